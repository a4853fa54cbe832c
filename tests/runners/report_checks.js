// Accessibility checks of a report in the browser that shows it. Run by test_report_in_browser.py.
window.focusable = () => [...document.querySelectorAll("a[href], summary, [tabindex='0']")].filter(
  element => element.checkVisibility({ contentVisibilityAuto: false }) && !element.closest("details:not([open]) > :not(summary)"));

const channels = colour => {
  const canvas = channels.canvas ??= Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const paint = canvas.getContext("2d", { willReadFrequently: true });
  paint.clearRect(0, 0, 1, 1);
  paint.fillStyle = colour;
  paint.fillRect(0, 0, 1, 1);
  return [...paint.getImageData(0, 0, 1, 1).data];
};
const luminance = ([...rgb]) => {
  const [r, g, b] = rgb.slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = element => {
  for (let at = element; at; at = at.parentElement) {
    const colour = channels(getComputedStyle(at).backgroundColor);
    if (colour[3] === 255) return colour;
  }
  return [255, 255, 255, 255];
};
const contrast = element => {
  const svg = element.closest("svg") && element.tagName === "text";
  const [a, b] = [channels(getComputedStyle(element)[svg ? "fill" : "color"]), behind(element)].map(luminance);
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
};
const ownText = element => [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
const short = element => element.outerHTML.slice(0, 160);
const all = what => [...document.querySelectorAll(what)];

const faint = new Map();
for (const element of all("body *")) {
  if (!ownText(element) || ["STYLE", "DESC"].includes(element.tagName.toUpperCase())) continue;
  const style = getComputedStyle(element);
  const key = [style.color, style.fill, element.tagName, element.className.baseVal ?? element.className,
    element.parentElement.className.baseVal ?? element.parentElement.className].join();
  if (faint.has(key)) continue;
  const ratio = contrast(element);
  faint.set(key, ratio < 4.5 ? `${ratio.toFixed(2)} ${short(element)}` : null);
}

const ids = all("[id]").map(element => element.id);
const named = element => element.getAttribute("aria-label") || document.getElementById(element.getAttribute("aria-labelledby"))?.textContent;
const verdict = document.querySelector(".verdict");
return {
  language: document.documentElement.lang,
  overflow: Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth),
  dark: luminance(behind(document.body)) < 0.2,
  faint: [...faint.values()].filter(Boolean),
  landmarks: [...document.body.children].map(element => element.tagName).filter(tag => tag !== "A"),
  headings: all("h1, h2, h3, h4").map(element => Number(element.tagName[1])),
  // What is advised: each part of the headline's answer and the other answers, with where they are.
  recommendation: all("header > dl.recommendation > dt").map(element => [element.dataset.part, element.getBoundingClientRect().bottom]),
  others: all("header > details").map(element => element.getBoundingClientRect().bottom),
  commands: all("header > dl.recommendation .commands code").map(element => element.textContent),
  charts: all("th.forest").length,
  legends: all(".legend").length,
  verdict: { text: verdict.textContent, bottom: verdict.getBoundingClientRect().bottom },
  // Every table has a caption, and every header cell has a scope.
  tables: all("table").filter(element => !element.caption?.textContent.trim() || !element.tHead).map(short),
  cells: all("th").filter(element => !element.scope || !element.textContent.trim()).map(short).concat(
    all("tbody tr").filter(element => !element.querySelector("th")).map(short)),
  ids: ids.filter((id, place) => ids.indexOf(id) !== place),
  links: all("a[href^='#']").filter(element => !document.getElementById(element.hash.slice(1)) || !element.textContent.trim()).map(short),
  // Images have a label, or are hidden because the neighbouring cells contain the same.
  images: all("svg").filter(element => element.getAttribute("aria-hidden") !== "true" && !(element.getAttribute("role") === "img" && named(element))).map(short),
  sections: all("section").filter(element => !named(element)).map(short),
  // Scrollable regions can be reached by keyboard and have a unique name.
  regions: all("[role=region]").filter((element, place, those) => those.some(other => other !== element && named(other) === named(element))).map(short).concat(
    all("[tabindex]").filter(element => element.tabIndex !== 0 || !named(element)).map(short).concat(
    all("body *").filter(element => element.scrollWidth > element.clientWidth + 1 && ["auto", "scroll"].includes(getComputedStyle(element).overflowX)
      && element.tabIndex !== 0 && !element.querySelector("a")).map(short))),
};
