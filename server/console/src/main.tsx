// The console: which room an address shows.
import "./style.css";
import { options, render } from "preact";
import { useEffect, useErrorBoundary } from "preact/hooks";
import { Agents, Frame } from "./frame";
import { Hand } from "./hand";
import { House } from "./house";
import { Memory } from "./memory";
import { Now } from "./now";
import { Prompt } from "./prompt";
import { RecordPage } from "./record";
import { path, query } from "./route";
import { Session, Sessions, StepPage } from "./sessions";
import { BlobPage } from "./step";
import { Wires } from "./wires";

// Characters that have no shape, or turn others around, are written as code points in every
// text: what a page shows is what is there.
const hidden = /[^\P{C}\n\t]|[\p{Zl}\p{Zp}\p{Variation_Selector}\p{Default_Ignorable_Code_Point}\u2800]/gu;
// Most texts need no look at those classes, which a browser is long in building.
const odd = /[^\n\t\x20-\x7e\xa0-\xac\xae-\u02ff\u2010-\u2027]/;
const code = (c: string) => `<U+${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}>`;
const plain = (child: unknown) => (typeof child === "string" && odd.test(child) ? child.replace(hidden, code) : child);
const before = options.vnode;
options.vnode = (node) => {
  const props = node.props as { children?: unknown };
  if (typeof node.type === "string" && props.children) {
    props.children = Array.isArray(props.children) ? props.children.map(plain) : plain(props.children);
  }
  before?.(node);
};

/** The screen, or why it can't be drawn; the next address is tried anew. */
function Room() {
  const [failed, again] = useErrorBoundary();
  const address = path.value.join("/") + "?" + query.value;
  useEffect(again, [address]);
  if (!failed) return <Screen />;
  return (
    <>
      <h1>This screen can't be drawn</h1>
      <p class="trouble" role="alert">
        {String(failed)}
      </p>
      <button onClick={again}>try again</button>
    </>
  );
}

function Screen() {
  const [first, name, room, id, part, prompt] = path.value;
  switch (first) {
    case undefined:
      return <Now />;
    case "hand":
      return <Hand />;
    case "house":
      return <House />;
    case "a":
      if (!name) return <Agents />;
      if (room === "s") return !id ? <Sessions key={name} agent={name} /> : part === "p" && prompt ? <Prompt key={name + "/" + id} agent={name} session={id} id={prompt} /> : <Session key={name + "/" + id} agent={name} session={id} />;
      if (room === "w") return <Wires key={name} agent={name} />;
      if (room === "step" && id) return <StepPage agent={name} id={id} />;
      if (room === "blob" && id) return <BlobPage agent={name} name={id} />;
      if (room === "m") return id ? <RecordPage key={name + "/" + id} agent={name} id={id} /> : <Memory key={name} agent={name} />;
  }
  return (
    <>
      <h1>Nothing stands at this address</h1>
      <p>
        <a href="/console/">Now</a> shows what goes on.
      </p>
    </>
  );
}

render(
  <Frame>
    <Room />
  </Frame>,
  document.getElementById("app")!,
);
