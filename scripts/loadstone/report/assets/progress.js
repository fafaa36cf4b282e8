// Says so when the page should have been written again long ago, and keeps open what its reader has opened.
"use strict";

(function () {
  const notice = document.getElementById("stale"), title = document.title;

  function look() {
    const stale = Date.now() >= Number(notice.dataset.due);
    notice.hidden = !stale;
    document.querySelectorAll("[data-alive]").forEach((part) => { part.hidden = stale; });
    document.title = stale ? `Dead? ${title}` : title;
  }

  look();
  setInterval(look, 1000);

  // The page is loaded anew every few seconds.
  const OPEN = "loadstone.open", parts = [...document.querySelectorAll("details[data-key]")];
  try {
    const open = JSON.parse(sessionStorage.getItem(OPEN) || "[]");
    parts.forEach((part) => { part.open = open.includes(part.dataset.key); });
    const keep = () => sessionStorage.setItem(OPEN, JSON.stringify(parts.filter((part) => part.open).map((part) => part.dataset.key)));
    parts.forEach((part) => part.addEventListener("toggle", keep));
  } catch (error) {
    console.info(`What is opened here is not kept: ${error.message}`); // some browsers keep nothing of pages from files
  }
})();
