// SPDX-License-Identifier: Apache-2.0

extension InspectPage {
  /// The second script of a live page: asks for changes until the server no longer answers.
  static let liveScript = #"""

    'use strict';
    {
      const told = element('span', 'live');
      told.setAttribute('role', 'status');
      document.getElementById('facts').after(told);

      const update = read => {
        const held = document.activeElement ?? document.body, part = held.closest('[tabindex]');
        const top = details.scrollTop;
        display(read);
        if (selected < 0) details.replaceChildren();
        else show(objects[selected]);
        details.scrollTop = top;
        growAges(Date.now());
        // A link that had the focus was made anew.
        if (held.isConnected) return;
        const links = [...part?.querySelectorAll('a') ?? []];
        (links.find(link => link.hash === held.hash) ?? part)?.focus({ preventScroll: true });
      };

      /* A click, or a text that is selected to be copied, would be lost with what is drawn anew. */
      let isPressed = false;
      for (const event of ['pointerdown', 'pointermove', 'pointerup', 'pointercancel'])
        addEventListener(event, ({ buttons }) => { isPressed = buttons > 0; }, true);
      const isHeld = () => isPressed || (!getSelection().isCollapsed && details.contains(getSelection().anchorNode));

      const grow = () => { if (!document.hidden && !isHeld()) growAges(Date.now()); };
      const growing = setInterval(grow, 10000);
      document.addEventListener('visibilitychange', grow);

      const until = async isDone => { while (!isDone()) await new Promise(passed => setTimeout(passed, 100)); };

      /* The answer waits for a change, or says after a while that there was none. */
      const ask = async () => {
        await until(() => !document.hidden);
        const answer = await fetch('changes/' + data.made, { redirect: 'error' });
        if (!answer.ok) throw new Error(answer.status);
        if (answer.status !== 200) return;
        const read = await answer.json();
        await until(() => !isHeld());
        update(read);
      };

      const live = async () => {
        let last;
        for (let failures = 0; failures < 2;) try {
          await ask();
          failures = 0;
        } catch {
          // One failure may be that of a machine that slept.
          if (!failures) last = Date.now();
          failures += 1;
          await new Promise(passed => setTimeout(passed, 500));
        }
        clearInterval(growing);
        document.removeEventListener('visibilitychange', grow);
        told.textContent = 'not live since ' + zoned(last) + ', because restorationctl does not answer';
      };

      live();
    }

    """#
}
