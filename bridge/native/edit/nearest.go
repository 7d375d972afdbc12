package edit

import (
	"slices"
	"strings"
)

const (
	// leastLike is how much of a line must be like another one to be shown, by Dice's
	// coefficient of their pairs of letters: below it, lines of code that have nothing
	// to do with one another come up.
	leastLike = 0.4
	// maxCompared bounds the bytes of a line that are compared, and maxSearched those
	// of a text in which something like another one is looked for.
	maxCompared = 200
	maxSearched = 1 << 20
	// maxTried bounds the lines of an edit that others are compared with.
	maxTried = 4
)

// nearest finds the lines of content that are most like old: the line that is most like
// one of its longest, with those around. First is 0 where nothing is like it; blanks says
// that they differ in white space alone.
func nearest(content, old string) (first int, lines []string, blanks bool) {
	if len(content) > maxSearched {
		content = content[:maxSearched]
	}
	have, want := strings.Split(content, "\n"), strings.Split(strings.Trim(old, "\n"), "\n")
	if at := sameButBlanks(have, want); at >= 0 {
		return at + 1, part(have, at, len(want)), true
	}
	at, best := -1, leastLike
	for _, i := range longest(want) {
		pairs := pairsOf(want[i])
		for j, line := range have {
			if like := alike(pairs, pairsOf(line)); like > best {
				at, best = max(0, j-i), like
			}
		}
	}
	if at < 0 {
		return 0, nil, false
	}
	return at + 1, part(have, at, len(want)), false
}

// longest are the places of the longest lines, at most maxTried, the longest first.
func longest(lines []string) []int {
	places := make([]int, len(lines))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int {
		return len(strings.TrimSpace(lines[b])) - len(strings.TrimSpace(lines[a]))
	})
	return places[:min(len(places), maxTried)]
}

// sameButBlanks is the first of lines that are the wanted ones but for white space; -1 for
// none.
func sameButBlanks(have, want []string) int {
	squeezed := make([]string, len(want))
	for i, line := range want {
		squeezed[i] = squeeze(line)
	}
	if strings.Join(squeezed, "") == "" {
		return -1
	}
	for at := 0; at+len(want) <= len(have); at++ {
		i := 0
		for i < len(want) && squeeze(have[at+i]) == squeezed[i] {
			i++
		}
		if i == len(want) {
			return at
		}
	}
	return -1
}

// squeeze is a line without its white space.
func squeeze(line string) string { return strings.Join(strings.Fields(line), "") }

// part are some lines, as an error shows them.
func part(lines []string, first, count int) []string {
	var out []string
	size := 0
	for _, line := range lines[first:min(first+min(count, maxShownLines), len(lines))] {
		line = shown(line)
		if size += len(line); size > maxShownBytes {
			break
		}
		out = append(out, line)
	}
	return out
}

// pairsOf counts the pairs of letters of a line that stand next to each other, white space
// at its ends left out.
func pairsOf(line string) map[[2]byte]int {
	line = strings.TrimSpace(line)
	line = line[:min(len(line), maxCompared)]
	pairs := map[[2]byte]int{}
	for i := 0; i+1 < len(line); i++ {
		pairs[[2]byte{line[i], line[i+1]}]++
	}
	return pairs
}

// alike is the part of the pairs that both have, 0 to 1.
func alike(a, b map[[2]byte]int) float64 {
	all, both := 0, 0
	for pair, n := range a {
		all += n
		both += min(n, b[pair])
	}
	for _, n := range b {
		all += n
	}
	if all == 0 {
		return 0
	}
	return 2 * float64(both) / float64(all)
}
