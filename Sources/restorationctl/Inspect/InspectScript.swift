// SPDX-License-Identifier: Apache-2.0

extension InspectPage {
  /// The page's program. Data gets into the document only as text.
  static let script = #"""

    'use strict';
    const begin = performance.now();
    const rowHeight = 24;
    const [tree, list, details, search, slider, line] =
      ['tree', 'rows', 'details', 'search', 'slider', 'line'].map(id => document.getElementById(id));

    // Text

    /* What is invisible or turns the direction of text is shown by its number. */
    const invisible = /(?!\p{Variation_Selector})[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{DI}\u2800]/gu;
    const printable = text => String(text).replace(invisible, found =>
      found.split('').map(unit => '\\u' + unit.charCodeAt(0).toString(16).padStart(4, '0')).join(''));

    const element = (name, text, kind) => {
      const made = document.createElement(name);
      if (text !== undefined) made.textContent = printable(text);
      if (kind) made.className = kind;
      return made;
    };

    const size = bytes => {
      if (bytes < 1024) return bytes + ' B';
      const unit = Math.min(4, Math.floor(Math.log2(bytes) / 10));
      return (bytes / 1024 ** unit).toFixed(1) + ' ' + ['B', 'KiB', 'MiB', 'GiB', 'TiB'][unit];
    };

    const age = time => {
      const seconds = Math.max(0, Math.floor((now - time) / 1000));
      for (const [length, unit] of [[86400, 'd'], [3600, 'h'], [60, 'min']])
        if (seconds >= length) return Math.floor(seconds / length) + ' ' + unit;
      return seconds + ' s';
    };

    const aged = (name, modified, kind) => {
      const told = element(name, modified ? age(Date.parse(modified)) : '–', kind);
      if (modified) told.dataset.since = Date.parse(modified);
      return told;
    };

    /* Tells all ages that are seen as they are at this time. */
    const growAges = time => {
      now = time;
      for (const told of document.querySelectorAll('[data-since]')) told.textContent = age(told.dataset.since);
    };

    const count = (number, name) => number + ' ' + name + (number === 1 ? '' : 's');

    /* Times are those of the reader's clock, as those that restorationctl prints. */
    const two = number => String(number).padStart(2, '0');
    const clock = time => {
      const at = new Date(time);
      const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join('-');
      return day + ' ' + [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(':');
    };
    const zoned = time => {
      const east = -new Date(time).getTimezoneOffset(), minutes = Math.abs(east);
      const zone = (east < 0 ? '-' : '+') + two(Math.floor(minutes / 60)) + ':' + two(minutes % 60);
      return clock(time) + ' UTC' + (east ? zone : '');
    };

    /* Lays compact JSON out; numbers keep their digits. */
    const pretty = text => {
      let laid = '', depth = 0, before = '';
      const breakLine = () => { laid += '\n' + '  '.repeat(Math.min(depth, 40)); };
      for (const [token] of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^{}[\],:"]+/g)) {
        const opened = before === '{' || before === '[';
        if (token === '}' || token === ']') {
          depth -= 1;
          if (!opened) breakLine();
        } else if (opened || before === ',') breakLine();
        laid += token === ':' ? ': ' : printable(token);
        if (token === '{' || token === '[') depth += 1;
        before = token;
      }
      return laid;
    };

    // The tree: objects are in its order, parents first

    const permalink = path => path.map(encodeURIComponent).join('/');
    const places = new Map(), incoming = new Map();
    let data, objects, made, now, roots;

    const take = read => {
      const open = [];
      data = read;
      [objects, made, roots] = [data.objects, Date.parse(data.made), 0];
      now = made;
      places.clear();
      incoming.clear();
      objects.forEach((object, index) => {
        object.link = object.path ? permalink(object.path) : '@' + object.node;
        object.name = object.path ? object.path.at(-1) : '(no identifier)';
        object.classes = [object.objectClass ?? []].flat();
        object.above = object.depth ? open[object.depth - 1] : -1;
        object.children = 0;
        object.place = object.above < 0 ? ++roots : ++objects[object.above].children;
        open[object.depth] = index;
        places.set(object.link, index);
        for (const target of new Set((object.references ?? []).map(permalink)))
          incoming.has(target) ? incoming.get(target).push(index) : incoming.set(target, [index]);
      });
      for (let index = objects.length - 1; index >= 0; index -= 1) {
        const object = objects[index];
        object.end ??= index + 1;
        if (object.above >= 0) objects[object.above].end ??= object.end;
      }
    };

    // Of the selected object there is the number, and the link, by which it is found again in other data.
    const collapsed = new Set();
    let rows = [], found = null, selected = -1, chosen, changes = new Map(), due;

    const listRows = () => {
      rows = [];
      for (let index = 0; index < objects.length;) {
        if (!found || found.has(index)) rows.push(index);
        index = !found && collapsed.has(objects[index].link) ? objects[index].end : index + 1;
      }
      // Rows further down would keep the place that they had.
      list.replaceChildren();
      list.style.height = rows.length * rowHeight + 'px';
    };

    const marks = object => [
      object.object === null && 'vacant', object.orphaned && 'orphaned', !object.included && 'excluded',
      object.confidential && 'confidential', object.quarantined && 'quarantined', object.modified === null && 'empty',
    ].filter(Boolean);

    const colours = new Map();
    const colour = process => {
      if (!colours.has(process)) colours.set(process, colours.size % 6);
      return colours.get(process);
    };

    const row = (index, number) => {
      const object = objects[index], item = element('div', undefined, 'row columns'), change = changes.get(object.link);
      const isOpen = found !== null || !collapsed.has(object.link);
      item.id = 'row' + index;
      item.dataset.index = index;
      item.style.top = number * rowHeight + 'px';
      const facts = {
        level: object.depth + 1, posinset: object.place, selected: index === selected,
        setsize: object.above < 0 ? roots : objects[object.above].children,
      };
      if (object.children) facts.expanded = isOpen;
      item.setAttribute('role', 'treeitem');
      for (const [name, value] of Object.entries(facts)) item.setAttribute('aria-' + name, value);
      const name = element('span', undefined, 'name');
      const owner = element('span', undefined, 'owner c' + colour(object.process));
      name.style.paddingLeft = Math.min(object.depth, 30) + 'em';
      const twisty = element('span', object.children ? (isOpen ? '▾' : '▸') : '', 'twisty');
      twisty.setAttribute('aria-hidden', 'true');
      name.append(twisty, element('bdi', object.name));
      if (change) name.append(element('span', change, 'change'));
      owner.append(element('bdi', object.process ?? '–'));
      item.append(
        name, element('bdi', object.classes[0] ?? '–'), owner,
        aged('span', object.modified, 'number'),
        element('span', object.modified ? size(object.bytes) : '–', 'number'),
        element('span', marks(object).join(' ')));
      return item;
    };

    const draw = () => {
      const first = Math.max(0, Math.floor(tree.scrollTop / rowHeight) - 4);
      const last = Math.min(rows.length, first + Math.ceil(tree.clientHeight / rowHeight) + 8);
      list.replaceChildren(...rows.slice(first, last).map((index, number) => row(index, first + number)));
      const active = document.getElementById('row' + selected);
      if (active) tree.setAttribute('aria-activedescendant', active.id);
      else tree.removeAttribute('aria-activedescendant');
    };

    /* Opens what is above the object, and scrolls so far that its row is seen. */
    const reveal = index => {
      let isHidden = found !== null && !found.has(index);
      if (isHidden) [found, search.value, document.getElementById('matches').textContent] = [null, '', ''];
      for (let above = objects[index].above; above >= 0; above = objects[above].above)
        isHidden = collapsed.delete(objects[above].link) || isHidden;
      if (isHidden) listRows();
      const top = rows.indexOf(index) * rowHeight, least = top + rowHeight - tree.clientHeight;
      tree.scrollTop = Math.min(top, Math.max(least, tree.scrollTop));
    };

    const select = index => {
      [selected, chosen] = [index, objects[index].link];
      reveal(index);
      draw();
      show(objects[index]);
      details.scrollTop = 0;
      // Late, because browsers refuse many changes one after the other, as of a key that is held down.
      clearTimeout(due);
      due = setTimeout(() => history.replaceState(null, '', '#' + chosen), 300);
    };

    const toggle = index => {
      const object = objects[index];
      if (!object.children || found) return;
      if (!collapsed.delete(object.link)) collapsed.add(object.link);
      listRows();
      draw();
    };

    // One object

    const link = path => {
      const target = permalink(path), text = path.join('/');
      if (!places.has(target)) return element('bdi', text);
      const made = element('a', text);
      made.href = '#' + target;
      return made;
    };

    const section = (title, ...content) => {
      if (content.length) details.append(element('h3', title), ...content);
    };

    const code = text => {
      const made = element('pre');
      made.textContent = pretty(text);
      return made;
    };

    const itemise = (name, items) => {
      const made = element(name);
      made.append(...items.map(content => {
        const item = element('li');
        item.append(content);
        return item;
      }));
      return made;
    };

    const sentence = ([time, text, times]) => printable(
      (time === null ? '' : clock(time) + '  ') + data.texts[text] + (times > 1 ? ' (' + times + ' times)' : ''));

    const why = object => object.redacted ? 'confidential; restorationctl inspect --reveal shows it'
      : object.omitted ? 'left out, because the page would be too long; restorationctl show prints it'
      : object.status === 'none' || !object.status ? 'none' : object.status;

    const excluder = ({ path, below }) =>
      path ? path.join('/') : 'an object without identifier' + (below ? ', below ' + below.join('/') : '');

    const show = object => {
      details.replaceChildren();
      const title = element('h2');
      title.append(element('bdi', object.path ? object.path.join('/') : object.name));
      const facts = element('dl');
      const owner = (object.process ?? 'a process without a role') + (object.pid ? ', process ' + object.pid : '');
      const lines = {
        Class: object.classes.join(' < '), Kind: object.kind,
        Owner: object.object === null ? 'none' + (object.process ? '; written by ' + object.process : '') : owner,
        Marks: marks(object).join(', '), Revision: object.revision,
        Modified: object.modified && zoned(Date.parse(object.modified)), Age: object.modified,
        Size: object.modified && size(object.bytes), Verdict: data.texts[object.told],
        'Excluded by': object.excluder && excluder(object.excluder),
      };
      for (const [name, value] of Object.entries(lines))
        if (value) facts.append(element('dt', name), name === 'Age' ? aged('dd', value) : element('dd', value));
      details.append(title, facts);
      section('State', object.state === undefined ? element('p', why(object)) : code(object.state));
      if (object.elements) section('Elements', code(JSON.stringify(object.elements)));
      const targets = object.references ?? [], sources = incoming.get(object.link) ?? [];
      if (targets.length) section('Refers to', itemise('ul', targets.map(link)));
      if (sources.length) section('Referred to by', itemise('ul', sources.map(index => link(objects[index].path))));
      for (const [name, noted] of [['Last saved', object.saved], ['Last restored', object.restored]])
        if (noted?.length) section(name, itemise('ol', noted.map(sentence)));
    };

    // Generations and the time line

    const called = number => {
      const { generation, kind } = data.generations[number];
      return generation === null ? 'now' : 'generation ' + generation + ', ' + kind;
    };

    const generation = number => {
      const chosen = data.generations[number], isHead = chosen.generation === null, name = called(number);
      slider.setAttribute('aria-valuetext', name);
      const facts = isHead ? [zoned(made)] : [
        zoned(Date.parse(chosen.committed)), count(chosen.objects, 'object'), size(chosen.bytes),
      ];
      if (chosen.pinned) facts.push('pinned');
      document.getElementById('chosen').textContent = printable(name + ': ' + facts.join(', '));
      const difference = chosen.difference, items = [];
      changes = new Map();
      for (const kind of ['removed', 'added', 'changed']) {
        for (const entry of difference?.[kind] ?? []) {
          const path = entry.path ?? entry, item = element('span', kind + ' ');
          if (kind !== 'removed') changes.set(permalink(path), kind);
          item.append(link(path), entry.keys?.length ? printable(': ' + entry.keys.join(', ')) : '');
          items.push(item);
        }
        const rest = (difference?.counts[kind] ?? 0) - (difference?.[kind].length ?? 0);
        if (rest > 0) items.push(element('span', rest + ' more ' + kind));
      }
      const nothing = difference ? 'Nothing differs from the one before.' : 'Nothing before it is known.';
      const told = items.length ? itemise('ul', items) : element('p', nothing);
      document.getElementById('difference').replaceChildren(told);
      for (const tick of line.querySelectorAll('.tick')) tick.classList.toggle('now', +tick.dataset.number === number);
      draw();
    };

    const timeline = () => {
      line.replaceChildren();
      const span = name => objects.flatMap(object => object[name] ?? []).map(([time]) => time ?? made)
        .reduce(([first, last], time) => [Math.min(first, time), Math.max(last, time)], [Infinity, -Infinity]);
      const [saved, restored] = ['saved', 'restored'].map(span);
      const times = data.generations.map(entry => entry.committed ? Date.parse(entry.committed) : made);
      const first = Math.min(made, saved[0], restored[0], ...times);
      const width = Math.max(1, Math.max(made, saved[1], restored[1], ...times) - first);
      const bar = (from, to, top, height, kind, title) => {
        const [shape, words] = ['rect', 'title'].map(name => document.createElementNS(line.namespaceURI, name));
        const place = time => (time - first) / width * 990;
        const facts = { x: place(from), y: top, width: Math.max(3, place(to) - place(from)), height, class: kind };
        for (const [name, value] of Object.entries(facts)) shape.setAttribute(name, value);
        words.textContent = printable(title);
        shape.append(words);
        line.append(shape);
        return shape;
      };
      for (const [kind, name, [from, to], top] of [
        ['saved', 'last saves', saved, 4], ['restored', 'last restoration', restored, 12],
      ]) if (from <= to) bar(from, to, top, 6, kind, name + ': ' + clock(from) + ' to ' + zoned(to));
      times.forEach((time, number) => {
        bar(time, time, 20, 12, 'tick', called(number) + ', ' + zoned(time)).dataset.number = number;
      });
    };

    // What people do

    const filter = () => {
      const query = search.value.trim().toLowerCase();
      found = query ? new Set() : null;
      let matches = 0;
      if (query) objects.forEach((object, index) => {
        object.words ??= [...object.path ?? [object.name], ...object.classes, object.process, object.verdict]
          .join('/').toLowerCase();
        if (!object.words.includes(query)) return;
        matches += 1;
        for (let above = index; above >= 0 && !found.has(above); above = objects[above].above) found.add(above);
      });
      document.getElementById('matches').textContent = query ? count(matches, 'object') + ' found' : '';
      listRows();
      draw();
    };

    const move = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity };

    tree.addEventListener('keydown', event => {
      if (!rows.length || event.ctrlKey || event.altKey || event.metaKey) return;
      const object = objects[selected], isOpen = object.children > 0 && (found !== null || !collapsed.has(object.link));
      if (event.key in move) {
        const number = rows.indexOf(selected) + move[event.key];
        select(rows[Math.max(0, Math.min(rows.length - 1, number))]);
      } else if (event.key === 'ArrowRight') {
        if (isOpen) select(rows[Math.min(rows.length - 1, rows.indexOf(selected) + 1)]);
        else toggle(selected);
      } else if (event.key === 'ArrowLeft') {
        if (isOpen && !found) toggle(selected);
        else if (object.above >= 0) select(object.above);
      } else if (event.key === 'Enter' || event.key === ' ') {
        toggle(selected);
      } else return;
      event.preventDefault();
    });
    list.addEventListener('click', event => {
      const item = event.target.closest('.row');
      if (!item) return;
      if (event.target.className === 'twisty') toggle(+item.dataset.index);
      else select(+item.dataset.index);
    });
    document.addEventListener('keydown', event => {
      if (event.key === '/' && event.target !== search) {
        event.preventDefault();
        search.focus();
      } else if (event.key === 'Escape' && event.target === search) {
        search.value = '';
        filter();
        tree.focus();
      }
    });
    const follow = () => {
      const index = places.get(location.hash.slice(1)) ?? (selected < 0 ? -1 : 0);
      if (index >= 0) select(index);
    };
    let isDue = false;
    const drawSoon = () => {
      if (!isDue) requestAnimationFrame(() => { isDue = false; draw(); });
      isDue = true;
    };
    search.addEventListener('input', filter);
    slider.addEventListener('input', () => generation(+slider.value));
    tree.addEventListener('scroll', drawSoon);
    window.addEventListener('resize', drawSoon);
    window.addEventListener('hashchange', () => {
      follow();
      details.focus();
    });

    /* The object, or what is left of the way to it. */
    const nearest = link =>
      places.get(link) ?? (link?.includes('/') ? nearest(link.slice(0, link.lastIndexOf('/'))) : undefined);

    /* Shows these data: what is searched for, the branches that are closed and the generation stay as they were. */
    const display = read => {
      const at = data ? data.generations[+slider.value].generation : null;
      take(read);
      selected = nearest(chosen) ?? (objects.length ? 0 : -1);
      document.title = printable(data.application) + ' – restorationctl inspect';
      document.querySelector('h1').textContent = printable(data.application);
      document.getElementById('facts').textContent = [
        count(objects.length, 'object'), count(data.sessions.length, 'session'),
        size(objects.reduce((sum, object) => sum + object.bytes, 0)), zoned(made),
      ].join(', ');
      slider.max = data.generations.length - 1;
      slider.value = Math.max(0, data.generations.findIndex(entry => entry.generation === at));
      timeline();
      filter();
      generation(+slider.value);
    };

    display(JSON.parse(document.getElementById('data').textContent));
    follow();
    document.getElementById('foot').textContent = printable(
      'The colour of a row is that of its process. restorationctl ' + data.version + '; shown in '
        + Math.ceil(performance.now() - begin) + ' ms.');

    """#
}
