"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // --- tables: a button in each heading sorts by its column ---------------------------------
  const status = document.getElementById("sorted");
  const key = (row, column) => {
    const text = row.cells[column].dataset.sort;
    const number = Number(text);
    return text !== "" && !Number.isNaN(number) ? number : text;
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number"
      ? a - b
      : String(a).localeCompare(String(b), undefined, { numeric: true });
  const sort = (table, heading, column) => {
    const down = heading.getAttribute("aria-sort") === "ascending";
    for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row, place) => ({ row, place, by: key(row, column) }));
    rows.sort((a, b) => (down ? -1 : 1) * compare(a.by, b.by) || a.place - b.place);
    body.append(...rows.map((entry) => entry.row));
    if (status) {
      const order = down ? "descending" : "ascending";
      status.textContent = `Sorted by ${heading.textContent.trim()}, ${order}.`;
    }
  };
  for (const table of all("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...heading.childNodes);
      button.addEventListener("click", () => sort(table, heading, column));
      heading.append(button);
    });
    table.classList.add("live");
  }

  // --- regions: the row and its place on the maps light up together -------------------------
  let pinned = null;
  const light = (region) => {
    for (const part of all("[data-region]")) {
      part.classList.toggle("on", region !== null && part.dataset.region === region);
    }
  };
  const pin = (region) => {
    pinned = pinned === region ? null : region;
    for (const button of all("button.spot")) {
      button.setAttribute("aria-pressed", String(button.textContent === pinned));
    }
    light(pinned);
  };
  const showMap = () => {
    const map = document.querySelector("figure.map:not([hidden])");
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (map) map.scrollIntoView({ block: "nearest", behavior: still ? "auto" : "smooth" });
  };
  for (const spot of all(".linked span.spot")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "spot";
    button.textContent = spot.textContent;
    button.setAttribute("aria-pressed", "false");
    const thing = spot.closest("table").dataset.spot;
    button.setAttribute("aria-label", `Show ${thing} ${spot.textContent} on the map`);
    button.addEventListener("click", () => {
      pin(button.textContent);
      if (pinned !== null) showMap();
    });
    spot.replaceWith(button);
  }
  for (const part of all("[data-region]")) {
    const region = part.dataset.region;
    part.addEventListener("pointerenter", () => light(region));
    part.addEventListener("pointerleave", () => light(pinned));
    part.addEventListener("focusin", () => light(region));
    part.addEventListener("focusout", () => light(pinned));
    if (part.localName === "rect") part.addEventListener("click", () => pin(region));
  }

  // --- maps: one at a time, chosen by its columns -------------------------------------------
  const choice = document.getElementById("choose-map");
  const more = document.querySelector(".more-maps");
  if (choice && more) {
    const figures = all("figure.map");
    more.before(...figures);
    more.remove();
    choice.parentElement.hidden = false;
    const show = () => {
      for (const figure of figures) figure.hidden = figure.id !== choice.value;
    };
    choice.addEventListener("change", show);
    show();
  }

  // --- paper: what is folded on the screen is open in print ---------------------------------
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all("details:not([open])");
    for (const part of folded) part.open = true;
  });
  addEventListener("afterprint", () => {
    for (const part of folded) part.open = false;
  });
})();
