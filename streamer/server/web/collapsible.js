// Parts that are folded where the screen is narrow; where it is wide, and on paper, they are open.

/** As in style.css, where `fold` has no summary on wide screens. */
export const narrow = matchMedia("screen and (max-width: 40rem)");

function setAll(isOpen) {
  for (const each of document.querySelectorAll(".fold")) {
    each.open = isOpen;
  }
}

narrow.addEventListener("change", () => setAll(!narrow.matches));
addEventListener("beforeprint", () => setAll(true));
addEventListener("afterprint", () => setAll(!narrow.matches));
setAll(!narrow.matches);
