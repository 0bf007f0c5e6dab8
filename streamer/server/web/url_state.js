// What the address chooses: the window, the split, filters, and whatever else it names.

/** The parameters of the address. */
export function chosen() {
  return Object.fromEntries(new URLSearchParams(location.search));
}

/** Put parameters into the address; empty ones (null, "") leave it. */
export function remember(part) {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(part)) {
    if (value === null || value === "") {
      url.searchParams.delete(name);
    } else {
      url.searchParams.set(name, value);
    }
  }
  history.replaceState(null, "", url);
}
