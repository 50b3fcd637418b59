/* Captions of the side bar are headings without a level, which screen readers need. */
document.addEventListener("DOMContentLoaded", function () {
  document.querySelectorAll('[role="heading"]:not([aria-level])').forEach(function (caption) {
    caption.setAttribute("aria-level", "2");
  });
});
