// Package events is the bus that agents talk through.
//
// The nouns:
//
//   - A topic is a name of dot-separated words. Each tenant has its own, and
//     each topic counts its own durable events: 1, 2, 3, without gaps.
//   - An [Event] is one thing that happened on a topic. A durable event is in
//     the store before Emit returns; a volatile one reaches those who listen at
//     the moment and is never stored.
//   - A [Bus] takes events in and hands them out.
//   - A [Subscription] reads some topics, each from a [Position] on, and follows
//     what comes.
//
// A subscription pulls: durable events are read from the store from its
// position on, so a slow reader costs no memory and misses nothing. At the end
// of a topic it waits. An event emitted then is handed over in memory, and one
// that is not at hand any more is read from the store. Volatile events wait in
// a bounded queue; those that find it full are dropped, and the next delivery
// says how many.
//
// Caveats: order holds within a topic, not between topics, and not between the
// durable and the volatile events of one topic. An event id is a name, not a
// key: emitting the same id twice stores two events. A request id makes an
// emit safe to repeat. Payloads and headers of delivered events are shared
// between subscribers and must not be changed.
package events
