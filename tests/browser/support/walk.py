"""Ways through the app that every browser test may take, and what a page must not hold that shows texts of rollouts."""

from __future__ import annotations

from playwright.sync_api import Page

INNOCENT = """() => {
  const forbidden = new Set(["script", "iframe", "frame", "object", "embed", "applet", "base", "meta", "link", "video",
    "audio", "source", "math", "foreignobject", "marquee", "form", "image", "use"]);
  const addresses = new Set(["href", "src", "xlink:href", "action", "formaction", "srcdoc", "srcset", "data", "poster",
    "background"]);
  const local = /^(#|\\/(?!\\/)|data:image\\/(png|svg|jpeg)|(blob:)?http:\\/\\/127\\.0\\.0\\.1[:/])/;
  const made = [];
  const say = (element, why) => made.push(`${why}: ${element.outerHTML.slice(0, 160)}`);
  const look = (root) => root.querySelectorAll("*").forEach((element) => {
    if (element.shadowRoot) look(element.shadowRoot);
    const name = element.localName.toLowerCase();
    if (forbidden.has(name)) say(element, "element");
    if (name === "img" && !element.matches('[data-testid="stHeaderLogo"]')) say(element, "picture");
    if (element.matches(".katex")) say(element, "formula");
    for (const { name: attribute, value } of element.attributes) {
      if (/^on/i.test(attribute)) say(element, "handler");
      if (addresses.has(attribute.toLowerCase()) && !local.test(value)) say(element, "address");
      if (attribute === "style" && /url\\((?!"#)|expression|@import/i.test(value)) say(element, "style");
    }
  });
  look(document.body);
  document.head.querySelectorAll("base, meta[http-equiv]").forEach((element) => say(element, "head"));
  return made;
}"""


def made_from_text(page: Page) -> list[str]:
    """Elements, handlers and addresses that no page of the app has of its own, shadow trees and menus included."""
    return list(page.evaluate(INNOCENT))


def texts_of(page: Page, selector: str) -> list[str]:
    """The whole texts of all elements that match, shown or folded away; joiners that keep addresses apart are left out."""
    found = page.evaluate("(s) => Array.from(document.querySelectorAll(s), (e) => e.textContent)", selector)
    return [text.replace("\u2060", "") for text in found]


def cells_of(page: Page) -> list[str]:
    """The cells of all tables on the page, as a reader by ear gets them."""
    return texts_of(page, 'canvas [role="gridcell"]')


def go_to(page: Page, where: str) -> None:
    """Another address of the page that is open, as the back button would bring it: nothing is loaded anew."""
    page.evaluate(
        "(to) => { history.pushState({}, '', to); dispatchEvent(new PopStateEvent('popstate', { state: {} })); }", where
    )
