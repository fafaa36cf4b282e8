// Shows a notice when the page is overdue for an update, and keeps opened details open when the page reloads.
"use strict";

(function () {
  const notice = document.getElementById("stale"), title = document.title;

  function checkAge() {
    const stale = Date.now() >= Number(notice.dataset.due);
    notice.hidden = !stale;
    document.querySelectorAll("[data-alive]").forEach((part) => { part.hidden = stale; });
    document.title = stale ? `Stopped? ${title}` : title;
  }

  checkAge();
  setInterval(checkAge, 1000);

  // The page reloads every few seconds.
  const OPEN = "loadstone.open", parts = [...document.querySelectorAll("details[data-key]")];
  try {
    const open = JSON.parse(sessionStorage.getItem(OPEN) || "[]");
    parts.forEach((part) => { part.open = open.includes(part.dataset.key); });
    const keep = () => sessionStorage.setItem(OPEN, JSON.stringify(parts.filter((part) => part.open).map((part) => part.dataset.key)));
    parts.forEach((part) => part.addEventListener("toggle", keep));
  } catch (error) {
    console.info(`Opened details do not stay open: ${error.message}`); // some browsers have no storage for pages from files
  }
})();
