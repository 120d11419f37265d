"use strict";
// The search of the documents' site. MkDocs' own fetches its index, which browsers forbid to pages that were opened from a file; this one has
// the index as a script beside it (scripts/site), which works from a file and from a server alike.
(() => {
  const input = document.getElementById("mkdocs-search-query");
  const list = document.getElementById("mkdocs-search-results");
  if (!input || !list) return;
  const MOST = 40, AROUND = 90;

  const words = (text) => text.toLowerCase().split(/[^\p{L}\p{N}_-]+/u).map((word) => word.replace(/^-+/, "")).filter(Boolean);

  // How often a word begins in a text.
  const count = (text, word) => {
    let found = 0;
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
      if (at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1])) found++;
    }
    return found;
  };

  const search = (query) => {
    const wanted = words(query);
    if (wanted.length === 0) return [];
    const found = [];
    for (const page of window.siteIndex) {
      const title = page.title.toLowerCase(), text = page.text.toLowerCase();
      let score = 0, met = 0;
      for (const word of wanted) {
        const here = 10 * Math.min(count(title, word), 1) + Math.log2(1 + count(text, word));
        score += here;
        met += here > 0 ? 1 : 0;
      }
      if (met > 0) found.push({ page, met, score });
    }
    // What has all words comes first; of the others what has more of them.
    found.sort((a, b) => b.met - a.met || b.score - a.score);
    return found.slice(0, MOST).map(({ page }) => ({ page, wanted }));
  };

  const excerpt = (text, wanted) => {
    const places = wanted.map((word) => text.toLowerCase().indexOf(word)).filter((at) => at >= 0);
    const at = places.length > 0 ? Math.min(...places) : 0;
    const from = at > AROUND ? text.indexOf(" ", at - AROUND) + 1 : 0;
    return (from > 0 ? "... " : "") + text.slice(from, at + 2 * AROUND) + (at + 2 * AROUND < text.length ? " ..." : "");
  };

  const show = () => {
    list.replaceChildren();
    const found = search(input.value);
    for (const { page, wanted } of found) {
      const article = document.createElement("article"), heading = document.createElement("h3");
      const link = document.createElement("a"), summary = document.createElement("p");
      link.href = page.location;
      link.textContent = page.title;
      summary.textContent = excerpt(page.text, wanted);
      heading.append(link);
      article.append(heading, summary);
      list.append(article);
    }
    if (found.length === 0 && input.value.trim() !== "") {
      const none = document.createElement("p");
      none.textContent = "No page has these words.";
      list.append(none);
    }
  };

  const index = document.createElement("script");
  index.src = new URL("index.js", document.currentScript.src).href;
  index.onload = () => {
    input.value = new URLSearchParams(location.search).get("q") ?? "";
    input.addEventListener("input", show);
    input.form?.addEventListener("submit", (event) => { event.preventDefault(); show(); });
    show();
  };
  document.head.append(index);
})();
