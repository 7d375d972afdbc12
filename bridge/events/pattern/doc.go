// Package pattern says which topics a reader means.
//
// A topic is a name of dot-separated words. A [Pattern] is an exact topic or a form
// that topics have, as the native API writes it ([Parse]) or as loom.v1 does
// ([Legacy]). An [Index] finds those whose patterns match a topic.
package pattern
