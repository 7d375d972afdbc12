// Package passage fills a number of tokens with what was found: short texts whole, and of
// long ones the passages that say most of the question. A passage is a stretch of a text
// that begins and ends between sentences or lines, byte for byte as it stands there.
//
// What is given is chosen by how much it is worth for the tokens it takes. A text is worth
// more the better it was ranked; a passage has the part of that which its words have of
// all words that were asked for; and what repeats something that is given already is worth
// only what it adds.
package passage
