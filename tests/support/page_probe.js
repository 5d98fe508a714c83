// Looks at a page from inside, for tests: the contrast of every text with what lies behind it, names of charts, header
// cells and links, and whether the page scrolls sideways. WCAG 2.2 asks for 4.5:1, and for large text for 3:1. Texts of
// charts are judged against the page; the shapes that they stand on are light or dark as the page is.
const channel = (v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const light = (c) => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
const parse = (text) => {
  const numbers = (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
  return numbers.length < 4 ? [...numbers, 1] : numbers;
};
const behind = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const colour = parse(getComputedStyle(e).backgroundColor);
    if (colour[3] > 0.5) return colour;
  }
  return [255, 255, 255, 1];
};

document.querySelectorAll("details").forEach((e) => (e.open = true));
const found = { low: [], texts: 0, unnamed: 0 };
found.wide = document.documentElement.scrollWidth > innerWidth;
found.dark = matchMedia("(prefers-color-scheme: dark)").matches;
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node; (node = walker.nextNode()); ) {
  const e = node.parentElement;
  const style = getComputedStyle(e);
  const silent = ["SCRIPT", "STYLE", "title", "desc"].includes(e.tagName);
  if (!node.data.trim() || silent || !e.getClientRects().length) continue;
  const front = light(parse(e.namespaceURI.endsWith("svg") ? style.fill : style.color));
  const back = light(behind(e));
  const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
  const size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
  found.texts++;
  if (ratio < (large ? 3 : 4.5)) found.low.push([node.data.trim().slice(0, 40), e.tagName, ratio.toFixed(2)]);
}
const named = (selector, has) => document.querySelectorAll(selector).forEach((e) => (found.unnamed += has(e) ? 0 : 1));
named("svg", (e) => e.querySelector("title")?.textContent);
named("th", (e) => e.scope);
named("a", (e) => e.textContent.trim() && e.tabIndex >= 0);
document.title = "FOUND" + JSON.stringify(found);
