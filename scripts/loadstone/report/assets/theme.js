/* Light or dark: as the reader's system has it, until the reader says otherwise here; that is remembered.
 *
 * Loaded in the head, so that no page is first drawn in the other colours.
 */
"use strict";

(function () {
  const KEPT = "loadstone.theme", root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");

  // Some browsers keep nothing of pages from files: then a choice is of one page.
  function kept(change) {
    try { return change(localStorage); } catch (error) { return null; }
  }

  const chosen = kept((store) => store.getItem(KEPT));
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.querySelector("button.theme");
    const show = () => button.setAttribute("aria-pressed", String(isDark()));
    button.hidden = false;
    button.addEventListener("click", () => {
      const wanted = isDark() ? "light" : "dark";
      // Who wants what the system has follows it from then on.
      if ((wanted === "dark") === system.matches) {
        delete root.dataset.theme;
        kept((store) => store.removeItem(KEPT));
      } else {
        root.dataset.theme = wanted;
        kept((store) => store.setItem(KEPT, wanted));
      }
      show();
    });
    system.addEventListener("change", show);
    show();
  });
})();
