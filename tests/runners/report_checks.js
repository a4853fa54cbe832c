// What a page's reader needs, asked of the browser that shows it. Run by test_report_in_browser.py.
window.focusable = () => [...document.querySelectorAll("a[href], summary, [tabindex='0']")].filter(
  one => one.checkVisibility({ contentVisibilityAuto: false }) && !one.closest("details:not([open]) > :not(summary)"));

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
const behind = one => {
  for (let at = one; at; at = at.parentElement) {
    const colour = channels(getComputedStyle(at).backgroundColor);
    if (colour[3] === 255) return colour;
  }
  return [255, 255, 255, 255];
};
const contrast = one => {
  const svg = one.closest("svg") && one.tagName === "text";
  const [a, b] = [channels(getComputedStyle(one)[svg ? "fill" : "color"]), behind(one)].map(luminance);
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
};
const ownText = one => [...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
const short = one => one.outerHTML.slice(0, 160);
const all = what => [...document.querySelectorAll(what)];

const faint = new Map();
for (const one of all("body *")) {
  if (!ownText(one) || ["STYLE", "DESC"].includes(one.tagName.toUpperCase())) continue;
  const style = getComputedStyle(one);
  const key = [style.color, style.fill, one.tagName, one.className.baseVal ?? one.className,
    one.parentElement.className.baseVal ?? one.parentElement.className].join();
  if (faint.has(key)) continue;
  const found = contrast(one);
  faint.set(key, found < 4.5 ? `${found.toFixed(2)} ${short(one)}` : null);
}

const ids = all("[id]").map(one => one.id);
const named = one => one.getAttribute("aria-label") || document.getElementById(one.getAttribute("aria-labelledby"))?.textContent;
const verdict = document.querySelector(".verdict");
return {
  language: document.documentElement.lang,
  overflow: Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth),
  dark: luminance(behind(document.body)) < 0.2,
  faint: [...faint.values()].filter(Boolean),
  landmarks: [...document.body.children].map(one => one.tagName).filter(tag => tag !== "A"),
  headings: all("h1, h2, h3, h4").map(one => Number(one.tagName[1])),
  verdict: { text: verdict.textContent, bottom: verdict.getBoundingClientRect().bottom },
  // A table tells what it is, and each of its heads what it is the head of.
  tables: all("table").filter(one => !one.caption?.textContent.trim() || !one.tHead).map(short),
  cells: all("th").filter(one => !one.scope || !one.textContent.trim()).map(short).concat(
    all("tbody tr").filter(one => !one.querySelector("th")).map(short)),
  ids: ids.filter((id, place) => ids.indexOf(id) !== place),
  links: all("a[href^='#']").filter(one => !document.getElementById(one.hash.slice(1)) || !one.textContent.trim()).map(short),
  // Pictures have a text, or are hidden because the cells beside them say the same.
  images: all("svg").filter(one => one.getAttribute("aria-hidden") !== "true" && !(one.getAttribute("role") === "img" && named(one))).map(short),
  sections: all("section").filter(one => !named(one)).map(short),
  // What scrolls can be reached by keyboard, and has a name.
  regions: all("[role=region]").filter((one, place, those) => those.some(other => other !== one && named(other) === named(one))).map(short).concat(
    all("[tabindex]").filter(one => one.tabIndex !== 0 || !named(one)).map(short).concat(
    all("body *").filter(one => one.scrollWidth > one.clientWidth + 1 && ["auto", "scroll"].includes(getComputedStyle(one).overflowX)
      && one.tabIndex !== 0 && !one.querySelector("a")).map(short))),
};
