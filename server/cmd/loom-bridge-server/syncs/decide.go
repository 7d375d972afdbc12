package syncs

import "time"

// presence says whether a side has a record.
type presence int

const (
	absent presence = iota
	present
	// outside: the record is there, and is not of what is kept in step: no longer let through by
	// the filter, or replaced by another and so without a note.
	outside
)

// view is what one side has of a record.
type view struct {
	state presence
	// hash stands for the content.
	hash string
	// time is when it came to be as it is, by the clock of its side.
	time time.Time
}

// verdict is what is to be done about a record.
type verdict int

const (
	nothing verdict = iota
	// agree: both sides have the same, which is noted.
	agree
	// forget: nothing is known of the record any more.
	forget
	copyThere
	copyHere
	removeThere
	removeHere
	// conflict: both sides have changed it, each in its own way.
	conflict
)

// decide says what is to be done about a record. known is what both sides had when they were last
// equal, nil for never. A content decides by whether it differs from the one that was last equal,
// so no clock has a say. notes says that the other side is a folder, which drops its note of
// a record that is outside.
func decide(known *pair, here, there view, now time.Time, notes bool) verdict {
	if here.state == outside || there.state == outside {
		return decideOutside(known, there, notes)
	}
	if known == nil {
		switch {
		case here.state == present && there.state == present && here.hash == there.hash:
			return agree
		case here.state == present && there.state == present:
			return conflict
		case here.state == present:
			return copyThere
		case there.state == present:
			return copyHere
		}
		return nothing
	}
	changedHere := here.state == absent || here.hash != known.Here.Hash
	changedThere := there.state == absent || there.hash != known.There.Hash
	switch {
	case here.state == absent && there.state == absent:
		return forget
	case !changedHere && !changedThere:
		return agree
	case here.state == absent && !changedThere && known.expired(now), there.state == absent && !changedHere && known.expired(now):
		return forget // each side lets it expire by itself
	case here.state == absent && !changedThere:
		return removeThere
	case there.state == absent && !changedHere:
		return removeHere
	case there.state == absent, !changedThere:
		return copyThere // a change wins over a deletion
	case here.state == absent, !changedHere:
		return copyHere
	case here.hash == there.hash:
		return agree
	}
	return conflict
}

func decideOutside(known *pair, there view, notes bool) verdict {
	switch {
	case known == nil:
		return nothing
	case !notes || there.state != present:
		return forget
	case there.hash != known.There.Hash:
		return copyHere
	}
	return removeThere
}

// hereLater says which of two contents of a conflict stays: that of the later time, and where the
// clocks say the same, that of the greater hash, so that both machines choose alike.
func hereLater(here, there view) bool {
	if !here.time.Equal(there.time) {
		return here.time.After(there.time)
	}
	return here.hash > there.hash
}
