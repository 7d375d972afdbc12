// Package search finds the tools that do what somebody asks for, among more of them than
// a prompt can list.
//
// An [Index] holds tools by the words of their names (split at separators and humps),
// descriptions and arguments. [Index.Find] ranks them for a question by BM25 over these
// three fields, of which the name counts most. Words meet by their stems; a word of the
// question that means the same as one of a tool counts for less than that word itself,
// and so does one with almost the same spelling.
//
// What a tool says of itself is data of its provider: it can push itself forward in
// the order by its words, and it can do nothing else here.
package search
