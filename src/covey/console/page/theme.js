// Before anything is drawn: the theme that was chosen, if one was. Otherwise the system's holds.
(() => {
  const chosen = localStorage.getItem("covey.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
