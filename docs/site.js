// The theme gives every block of code a landmark for its copy button: each gets a name of its own.
const named = () =>
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((nav) => {
    nav.setAttribute("aria-label", `Copy ${nav.firstElementChild?.dataset.clipboardTarget ?? ""}`);
  });
new MutationObserver(named).observe(document, { childList: true, subtree: true });
named();
