// Package similar reports whether two texts say the same, without a model.
//
// A [Form] is a text without what does not change its meaning: upper case at the
// beginning of a sentence, blanks, closing points, contractions, some articles and filler
// words, phrases such as "Note:" in front. Two texts are near duplicates if their forms
// are equal, word for word. So one word more or less, another order, number, name or sign
// keeps them apart, and all near duplicates of a text have the same [Form.Sum]: they are
// found by one key, however many records there are. [Similarity] then says how much of
// the words is the same.
//
// Caveats: other words for the same thing are never recognised. Fillers, articles and
// contractions are English ones.
package similar
