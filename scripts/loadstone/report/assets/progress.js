// Says so when the page should have been written again long ago.
"use strict";

(function () {
  const notice = document.getElementById("stale");
  function look() {
    notice.hidden = Date.now() < Number(notice.dataset.due);
  }
  look();
  setInterval(look, 1000);
})();
