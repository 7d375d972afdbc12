package paths

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
)

// Figures are what one call of a path takes.
type Figures struct {
	// CPU is in units of Meter's fixed work.
	CPU float64 `json:"cpu"`
	// Allocations and Bytes count allocations.
	Allocations float64 `json:"allocations"`
	Bytes       float64 `json:"bytes"`
	// Reads are round trips for single keys, Keys the keys; Scans are ranges, Pairs what
	// they yielded; Syncs are commits, Written their bytes.
	Reads   float64 `json:"reads"`
	Keys    float64 `json:"keys"`
	Scans   float64 `json:"scans"`
	Pairs   float64 `json:"pairs"`
	Syncs   float64 `json:"syncs"`
	Written float64 `json:"written"`
}

// counted are the figures that hardly vary, each with what it may exceed its limit by in
// any case: what twenty runs under other load differed by. Of few reads and syncs not one
// more is taken.
func (f *Figures) counted() []figure {
	return []figure{
		{"allocations", f.Allocations, 100},
		{"bytes allocated", f.Bytes, 16 << 10},
		{"reads", f.Reads, 0},
		{"keys", f.Keys, 1},
		{"scans", f.Scans, 1},
		{"pairs", f.Pairs, 1},
		{"syncs", f.Syncs, 0},
		{"bytes written", f.Written, 64},
	}
}

type figure struct {
	name         string
	value, spare float64
}

// Book has the figures of all paths by their names.
type Book map[string]Figures

// Read reads a book.
func Read(file string) (Book, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var b Book
	if err := json.Unmarshal(data, &b); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return b, nil
}

// Write writes it, a path a line.
func (b Book) Write(file string) error {
	out, separator := []byte("{"), "\n"
	for _, name := range slices.Sorted(maps.Keys(b)) {
		line, err := json.Marshal(b[name])
		if err != nil {
			return err
		}
		out = fmt.Appendf(out, "%s  %q: %s", separator, name, line)
		separator = ",\n"
	}
	return os.WriteFile(file, append(out, "\n}\n"...), 0o644) //nolint:gosec // a file of the source
}

// share is what a counted figure may grow to.
const share = 1.10

// Over returns a line for each counted figure that is over its share of an earlier one, and
// for each path that the earlier book has not.
func (b Book) Over(before Book) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(b)) {
		now, then := b[name], before[name]
		was := then.counted()
		if cmp.Compare(then.Allocations, 0) == 0 {
			lines = append(lines, name+": has no figures yet")
			continue
		}
		for i, f := range now.counted() {
			if f.value > was[i].value*share+f.spare {
				lines = append(lines, fmt.Sprintf("%s: %s %.1f, over %.1f by more than a tenth", name, f.name, f.value, was[i].value))
			}
		}
	}
	return lines
}
