'use strict';
(() => {
  const table = document.getElementById('trackings');
  if (!table) return;
  const body = table.tBodies[0];
  const all = Array.from(body.rows);
  const form = document.getElementById('filter');
  const search = document.getElementById('search');
  const group = document.getElementById('group');
  const shown = document.getElementById('shown');
  const number = new Intl.NumberFormat('en');
  const texts = new Map();
  const textOf = (row) => {
    if (!texts.has(row)) texts.set(row, row.textContent.toLowerCase());
    return texts.get(row);
  };
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let n = 0;
    for (const row of all) {
      const takes = (!group.value || row.classList.contains(group.value)) && words.every((w) => textOf(row).includes(w));
      if (row.hidden === takes) row.hidden = !takes;
      if (takes) n++;
    }
    shown.textContent = number.format(n) + ' of ' + number.format(all.length) + ' shown';
  };
  // A time has its offset only if that is not the page's.
  const time = (text) => {
    const part = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d)(?: ([+-]\d\d:\d\d))?/.exec(text);
    return part ? Date.parse(part[1] + 'T' + part[2] + (part[3] || table.dataset.zone)) : NaN;
  };
  const order = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });
  const compare = (isTime) => (a, b) => {
    if (isTime && !isNaN(time(a)) && !isNaN(time(b))) return time(a) - time(b);
    return order.compare(a, b);
  };
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, column) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = head.textContent;
    // A browser repeats text on each page of paper, but no buttons.
    const printed = document.createElement('span');
    printed.textContent = head.textContent;
    head.replaceChildren(button, printed);
    button.addEventListener('click', () => {
      const down = head.getAttribute('aria-sort') === 'ascending';
      for (const h of heads) h.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      const by = compare(head.dataset.kind === 'time');
      const keys = new Map(all.map((row) => [row, row.cells[column].textContent]));
      // What is not known is last, in either direction.
      all.sort((a, b) => {
        const x = keys.get(a), y = keys.get(b);
        if (!x || !y) return !x - !y;
        return down ? by(y, x) : by(x, y);
      });
      body.append(...all);
    });
  });
  form.addEventListener('submit', (e) => e.preventDefault());
  let typing = 0; // a pause in typing is waited for: ten thousand rows take their time
  search.addEventListener('input', () => {
    clearTimeout(typing);
    typing = setTimeout(filter, 200);
  });
  group.addEventListener('change', filter);
  for (const link of document.querySelectorAll('a[data-group]')) {
    link.addEventListener('click', () => {
      search.value = '';
      group.value = link.dataset.group;
      filter();
    });
  }
  form.hidden = false;
  filter();
})();
