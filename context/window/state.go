package window

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
)

// MaxStateBytes bounds a state in its stored form.
const MaxStateBytes = 256 << 10

// State is what levels did to a session's units, by their positions. It is never changed
// once it is in use.
type State struct {
	// Turn names the turn of the last level, Level is that level.
	Turn  string `json:"turn,omitempty"`
	Level Level  `json:"level,omitempty"`
	// Overflow names the turn in which a provider refused a prompt; that turn's next
	// prompt is made by Reactive.
	Overflow string `json:"overflow,omitempty"`
	// Snipped are units whose texts are cut at snipChars, Shortened at ReactiveChars.
	Snipped   Spans `json:"snipped,omitempty"`
	Shortened Spans `json:"shortened,omitempty"`
	// Marked are the results that a line stands for.
	Marked []Marker `json:"marked,omitempty"`
	// Collapsed are units that one text stands for, Count how many messages those have,
	// and Goal what they were for.
	Collapsed Spans  `json:"collapsed,omitempty"`
	Count     int    `json:"count,omitempty"`
	Goal      string `json:"goal,omitempty"`
	// Gone are units that are left out.
	Gone Spans `json:"gone,omitempty"`
	// Sprint counts the renewals of the window, Since is the position of the first unit
	// after the last of them, and Handoff the text that the history begins with since.
	Sprint  int    `json:"sprint,omitempty"`
	Since   uint64 `json:"since,omitempty"`
	Handoff string `json:"handoff,omitempty"`
	// Memory is the most tokens of knowledge that a prompt shows from then on, plus one; 0:
	// no bound.
	Memory int `json:"memory,omitempty"`
}

// Marker says that a line stands for a result.
type Marker struct {
	// Unit is the position of its unit, At that of the entry that it stands in, and ID that
	// of its call.
	Unit uint64 `json:"u"`
	At   uint64 `json:"a"`
	ID   string `json:"i,omitempty"`
	// From is the id of the call that has the same result; empty says that a newer one
	// took its place.
	From string `json:"f,omitempty"`
}

// Spans are positions of units, as ranges that ascend.
type Spans [][2]uint64

// Has reports whether a position is among them.
func (s Spans) Has(position uint64) bool {
	at := sort.Search(len(s), func(i int) bool { return s[i][1] >= position })
	return at < len(s) && s[at][0] <= position
}

// with are the spans of s and of units, whose positions ascend. all are the positions of
// all units: neighbours among them become one range.
func (s Spans) with(all []uint64, units map[uint64]bool) Spans {
	var out Spans
	open := false
	for _, position := range all {
		in := units[position] || s.Has(position)
		switch {
		case in && open:
			out[len(out)-1][1] = position
		case in:
			out = append(out, [2]uint64{position, position})
		}
		open = in
	}
	return out
}

// Marks is the marker of a result; false for none.
func (s *State) Marks(at uint64, id string) (Marker, bool) {
	found := slices.IndexFunc(s.Marked, func(m Marker) bool { return m.At == at && m.ID == id })
	if found < 0 {
		return Marker{}, false
	}
	return s.Marked[found], true
}

// Hidden reports whether a unit stands in no prompt by itself.
func (s *State) Hidden(position uint64) bool {
	return s.Gone.Has(position) || s.Collapsed.Has(position)
}

// Limit is at how many characters the texts of a unit are cut; 0 is nowhere.
func (s *State) Limit(position uint64) int {
	switch {
	case s.Shortened.Has(position):
		return ReactiveChars
	case s.Snipped.Has(position):
		return snipChars
	}
	return 0
}

// Empty reports whether no level did anything, and none is asked for.
func (s *State) Empty() bool {
	return s.Overflow == "" && s.Handoff == "" && len(s.Snipped)+len(s.Shortened)+len(s.Marked)+len(s.Collapsed)+len(s.Gone) == 0
}

// Encode is the state in its stored form; empty for none.
func (s *State) Encode() string {
	if s.Empty() && s.Turn == "" {
		return ""
	}
	// A state is plain data, so it has a JSON text.
	stored, _ := json.Marshal(s)
	return string(stored)
}

// Decode reads what Encode wrote.
func Decode(stored string) (State, error) {
	var s State
	if stored == "" {
		return s, nil
	}
	if err := json.Unmarshal([]byte(stored), &s); err != nil {
		return State{}, fmt.Errorf("window: decode state: %w", err)
	}
	return s, nil
}
