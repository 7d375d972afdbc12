// Package events is the bus that agents talk through, for both APIs.
//
// The nouns:
//
//   - A topic is a name of dot-separated words. Each tenant has its own, and
//     each topic counts its own durable events: 1, 2, 3, without gaps.
//   - An [Event] is one thing that happened on a topic. A durable event is in
//     the store before Emit returns; a volatile one reaches listeners at
//     the moment and is never stored.
//   - A [Bus] takes events in and hands them out.
//   - A [Subscribed] is a pattern of topics with a place to begin, a filter and a
//     [QoS]; see package pattern. Package store keeps what is durable.
//   - A [Subscription] reads what its selections match.
//   - [Retention] says when stored events are deleted.
//
// A subscription pulls. For each topic it has a cursor: durable events are read
// from the store from there on, so a slow reader costs no memory and misses
// nothing but what retention deletes. At the end of a topic it waits. An event emitted then
// is handed over in memory, or read from the store if it has left memory. Before an event
// is committed its emitter gives every pattern that matches the topic a cursor there;
// cursors with nothing to read are dropped again, so a pattern costs nothing for topics
// that fell silent. Volatile events wait in bounded queues. What finds its queue full is
// dropped, and the next delivery says how many were; or its emitter waits, for a while, if
// the subscription asks for that. No subscription has a goroutine, and none delays another.
//
// Caveats:
//
//   - Durable events are in order within a topic. Between topics, and between
//     durable and volatile ones, a reader gets them in the order in which they
//     were emitted only while it is less than some thousand behind. Realtime
//     gets durable events of several emitters as they come. The past that
//     Selection.Since brings back is in order between topics as well, and what
//     is new waits behind it.
//   - Durable events wait in the store, but a topic in which some wait takes a
//     little memory. A subscription with thousands of such topics ends with
//     ErrSlowSubscriber.
//   - An event id is a name, not a key: emitting the same id twice stores two
//     events. A request id makes an emit safe to repeat while its event is kept.
//   - A pattern takes up a topic that another process writes to with the event
//     that is the last when the engine announces it.
//   - Payloads, headers and tags of delivered events are shared between
//     subscribers and must not be changed.
package events
