// SPDX-License-Identifier: Apache-2.0

extension InspectPage {
  static let style = """

    :root { color-scheme: light dark; --text: #1b1b1f; --ground: #fff; --faint: #5c5c66; --line: #d0d0d8;
      --chosen: #d6e4ff; --link: #0b57b0; --saved: #2f7d4f; --restored: #b45309 }
    @media (prefers-color-scheme: dark) {
      :root { --text: #e6e6ea; --ground: #17171a; --faint: #a2a2ad; --line: #3a3a42;
        --chosen: #26406b; --link: #8ab8ff; --saved: #6fcf97; --restored: #f0a050 }
    }
    * { box-sizing: border-box }
    body { margin: 0; height: 100vh; display: flex; flex-direction: column; font: 14px/1.45 system-ui, sans-serif;
      color: var(--text); background: var(--ground) }
    header, footer { padding: .4rem 1rem; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; align-items: baseline }
    header { border-bottom: 1px solid var(--line) }
    footer, #facts, #matches { color: var(--faint) }
    h1, h2, h3, p { margin: 0; overflow-wrap: anywhere }
    h1 { font-size: 1.2rem }
    h2 { font-size: 1.1rem }
    h3 { font-size: 1rem; margin-top: .9rem }
    main { flex: 1; min-height: 0; display: grid; grid-template-columns: 3fr 2fr; grid-template-rows: auto 1fr }
    a { color: var(--link); overflow-wrap: anywhere }
    input { font: inherit; accent-color: var(--link) }
    #history { grid-column: 1 / -1; padding: .4rem 1rem; border-bottom: 1px solid var(--line) }
    #history > :first-child { display: flex; gap: 1rem; align-items: center }
    #slider { flex: 1; min-width: 8rem }
    #line { display: block; width: 100%; height: 34px }
    #line .saved { fill: var(--saved) }
    #line .restored { fill: var(--restored) }
    #line .tick { fill: var(--faint) }
    #line .now { fill: var(--link) }
    #history #legend { display: flex; flex-wrap: wrap; gap: 0 1.2rem; color: var(--faint) }
    #legend span::before { content: ''; display: inline-block; width: .8em; height: .5em; margin-right: .4em }
    #legend .tick::before, #legend .now::before { width: 3px; height: .9em; vertical-align: -.1em }
    #legend .saved::before { background: var(--saved) }
    #legend .restored::before { background: var(--restored) }
    #legend .tick::before { background: var(--faint) }
    #legend .now::before { background: var(--link) }
    #difference { max-height: 7rem; overflow: auto }
    #difference ul { margin: 0 }
    #left { display: flex; flex-direction: column; min-width: 0; min-height: 0; border-right: 1px solid var(--line);
      container-type: inline-size }
    .columns { display: grid; padding: 0 .5rem; gap: .8rem;
      grid-template-columns: minmax(8rem, 4fr) 2fr 3fr 4rem 4.5rem 2fr }
    /* The heads have the room of a scroll bar, too: they are over their columns. */
    #head { overflow: hidden; scrollbar-gutter: stable; color: var(--faint); border-bottom: 1px solid var(--line) }
    #head .name { padding-left: 1.1em }
    #tree { flex: 1; overflow: auto; scrollbar-gutter: stable; position: relative; contain: strict }
    #rows { position: relative }
    .row { position: absolute; left: 0; right: 0; height: 24px; line-height: 24px; contain: strict }
    .columns > * { overflow: hidden; text-overflow: ellipsis; white-space: pre }
    .row[aria-selected=true] { background: var(--chosen) }
    .number { text-align: right }
    .twisty { display: inline-block; width: 1.1em; cursor: pointer }
    .change { margin-left: .6em; font-style: italic }
    .owner { border-left: .4em solid; padding-left: .4em }
    #head .owner { border-color: transparent }
    .c0 { border-color: #4a78c8 } .c1 { border-color: #b45f06 } .c2 { border-color: #3f8f5b }
    .c3 { border-color: #a04a9a } .c4 { border-color: #a08a1a } .c5 { border-color: #2f8f9a }
    #details { padding: .6rem 1rem; overflow: auto; min-width: 0 }
    dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem .8rem; margin: .5rem 0 }
    dt { color: var(--faint) }
    dd { margin: 0; overflow-wrap: anywhere }
    pre { margin: .2rem 0; white-space: pre-wrap; overflow-wrap: anywhere; font: 13px/1.4 ui-monospace, monospace }
    ol, ul { margin: .2rem 0; padding-left: 1.4rem }
    /* Narrow columns go before their texts are cut; the panes come one below the other. */
    @container (max-width: 44rem) {
      .columns { grid-template-columns: minmax(6rem, 4fr) 3fr 4rem 3fr }
      .columns > :nth-child(2), .columns > :nth-child(5) { display: none }
    }
    @container (max-width: 28rem) {
      .columns { grid-template-columns: minmax(6rem, 3fr) 2fr 3.5rem }
      .columns > :nth-child(6) { display: none }
    }
    @media (max-width: 44rem) {
      body { height: auto; min-height: 100vh }
      main { grid-template-columns: minmax(0, 1fr); grid-template-rows: auto }
      #left { height: 50vh; border-right: 0; border-bottom: 1px solid var(--line) }
    }
    :focus-visible { outline: 2px solid var(--link); outline-offset: -2px }

    """
}
