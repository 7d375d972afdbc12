// Package topics is what the bridge itself does with topics, for both protocols:
// which of them mean something, who may emit on them and who may read them.
//
// A [Rules] is asked about every event before the bus takes it. An event on
// `execute` or `node.*` (but not `node.message`) is a task: it is added to the
// tasks of its agent, with the topic as its action and the payload as the rest.
// An event on `node.message` is a direct message: it is kept in the box of its target,
// which gets it on its own topic, [Messages]; no other agent does. A [Sender] sends one
// without an event. An event on [Spawn] makes a child of its emitter, and one on [Result] is
// the emitter's own result; the child gets it on its topic [Spawned], the parent on
// [Results], by a [Notifier]. Both events go on to who reads their topics, the result to the
// parent alone, see [Hears]. What loom.v1 publishes on these topics does the same, and
// passes as it is where it asks for nothing. [Status], [Folded],
// [Progress] and the topics on which the bridge writes to one agent are the bridge's
// own, which [Notices], a [Notifier] and [Signals] emit on.
//
// What begins with `agent.<id>.` is the inbox of that agent: anybody emits there,
// and only it reads, see [ReadableBy].
package topics
