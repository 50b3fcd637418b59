document.addEventListener("DOMContentLoaded", function () {
  /* Captions of the side bar are headings without a level, which screen readers need. */
  document.querySelectorAll('[role="heading"]:not([aria-level])').forEach(function (caption) {
    caption.setAttribute("aria-level", "2");
  });
  /* Tables: paths and calls break after a sign, numbers at most before a bracket or ±. */
  document.querySelectorAll("table.docutils td code .pre").forEach(function (code) {
    const parts = code.textContent.split(/(?<=[\/(,=_:])(?=\w|")/);
    code.replaceChildren(...parts.flatMap((part, i) => (i ? [document.createElement("wbr"), part] : [part])));
  });
  document.querySelectorAll("table.docutils td").forEach(function (cell) {
    const text = cell.textContent.trim();
    if (!/\d/.test(text) || text.length > 23 || /[a-z]{3}|, .*, /i.test(text)) return;
    const range = [...(cell.querySelector("p") || cell).childNodes].find((part) => / [(±]/.test(part.data || ""));
    if (!range) return cell.classList.add("number");
    const bracket = document.createElement("span");
    bracket.className = "number";
    bracket.append(range.splitText(range.data.search(/[(±]/)));
    range.after(bracket);
  });
});
