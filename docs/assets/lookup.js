// A field that finds a format by any of its names, in whatever notation; data in formats.js.
(function () {
  const place = document.getElementById("lookup");
  if (!place || typeof FORMATS === "undefined") return;
  const here = location.pathname.includes("/gallery/") ? "" : "gallery/";
  const plain = (text) => text.replace(/[\s()]+/g, "");
  place.innerHTML =
    '<input type="search" placeholder="any name: nChw16c, NCHW16c, b_fs_yx_fsv16, {3,2,1,0}" ' +
    'aria-label="find a format by name"><div class="found" aria-live="polite"></div>';
  const field = place.querySelector("input"), found = place.querySelector(".found");

  // 0: the very name, 1: but for its case, 2: begins so, 3: has it somewhere; 9: not at all.
  function rank(names, asked) {
    let best = 9;
    for (const name of names.map(plain)) {
      if (name === asked) return 0;
      const low = name.toLowerCase(), want = asked.toLowerCase();
      if (low === want) best = Math.min(best, 1);
      else if (low.startsWith(want)) best = Math.min(best, 2);
      else if (low.includes(want)) best = Math.min(best, 3);
    }
    return best;
  }

  function card([name, page, drawing, names]) {
    const link = document.createElement("a");
    link.href = here + page + ".html#" + name;
    link.className = "card";
    const title = document.createElement("code"), others = document.createElement("small");
    title.textContent = name;
    others.textContent = names.filter((n) => n !== name).join(" · ");
    link.append(title, " ", others);
    if (drawing) {
      const image = document.createElement("img");
      image.src = here + "svg/" + drawing + ".svg";
      image.alt = "the order of " + name + " in memory";
      image.className = "drawing";
      link.append(image);
    }
    return link;
  }

  field.addEventListener("input", () => {
    const asked = plain(field.value);
    const hits = asked ? FORMATS.map((f) => [rank(f[3], asked), f]).filter(([r]) => r < 9) : [];
    hits.sort((a, b) => a[0] - b[0]);
    found.replaceChildren(...hits.slice(0, 8).map(([, f]) => card(f)));
    if (asked) {
      const line = document.createElement("p");
      line.textContent = hits.length
        ? `${hits.length} format${hits.length > 1 ? "s" : ""}${hits.length > 8 ? "; the first 8 are shown" : ""}`
        : "No listed format has such a name. `clformats explain NAME` reads names that are not listed, too.";
      found.prepend(line);
    }
  });
})();
