// Formulas of pages and of notebooks, also after the theme has loaded another page.
window.MathJax = {
  tex: { inlineMath: [["\\(", "\\)"], ["$", "$"]], displayMath: [["\\[", "\\]"], ["$$", "$$"]], processEscapes: true },
  options: { ignoreHtmlClass: ".*|", processHtmlClass: "arithmatex|jp-RenderedLatex|jp-RenderedMarkdown" },
};
