// Package evidence measures how much of the evidence for a question a search returns: among
// its first hits, and among the hits that fit a number of tokens. It asks servers of ours
// and other engines the same questions about the same texts, and prints tables.
package evidence
