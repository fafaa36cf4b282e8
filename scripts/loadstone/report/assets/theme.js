/* Light or dark theme: the system's setting, unless the reader chooses the other theme here. The choice is stored.
 *
 * Loaded in the head, so that no page appears in the wrong theme first.
 */
"use strict";

(function () {
  const KEY = "loadstone.theme", root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");

  // Some browsers have no storage for pages opened from files. A choice then applies to one page only.
  function stored(access) {
    try { return access(localStorage); } catch (error) { return null; }
  }

  const chosen = stored((store) => store.getItem(KEY));
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.querySelector("button.theme");
    const show = () => button.setAttribute("aria-pressed", String(isDark()));
    button.hidden = false;
    button.addEventListener("click", () => {
      const wanted = isDark() ? "light" : "dark";
      // After choosing the system's own theme, the page follows the system again.
      if ((wanted === "dark") === system.matches) {
        delete root.dataset.theme;
        stored((store) => store.removeItem(KEY));
      } else {
        root.dataset.theme = wanted;
        stored((store) => store.setItem(KEY, wanted));
      }
      show();
    });
    system.addEventListener("change", show);
    show();
  });
})();
