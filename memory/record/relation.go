package record

import (
	"cmp"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// Limits of relations.
const (
	// MaxRelationName bounds the name of a relation.
	MaxRelationName = 64
	// MaxRelationsFrom bounds the relations from a record, MaxRelationsTo the relations to
	// it.
	MaxRelationsFrom = 256
	MaxRelationsTo   = 1024
)

// Relation is an edge from one record to another.
type Relation struct {
	// From and To are the ids of the two records.
	From, To string
	// Name says how the first is related to the second, such as prefers or part_of.
	Name string
	// Time is when it was made.
	Time time.Time
	// End is when it ended; zero for one that stands.
	End time.Time
}

// Check returns an *invalid.Error unless the relation may be made.
func (r Relation) Check() error {
	if err := CheckID("from_id", r.From); err != nil {
		return err
	}
	if err := CheckID("to_id", r.To); err != nil {
		return err
	}
	if problem := RelationProblem(r.Name); problem != "" {
		return invalid.Field(ErrInvalid, "name", "%s", problem)
	}
	if r.From == r.To {
		return invalid.Field(ErrInvalid, "to_id", "is the record itself")
	}
	return nil
}

// RelationProblem says what is wrong with a name; empty for a good one. It is 1 to MaxRelationName of
// ASCII letters, digits and _ - . : and begins with a letter.
func RelationProblem(name string) string {
	if name == "" {
		return "is required"
	}
	if len(name) > MaxRelationName {
		return fmt.Sprintf("has %d bytes, it may have %d", len(name), MaxRelationName)
	}
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		other := c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' || c == ':'
		if !letter && (i == 0 || !other) {
			return "is not a letter and then letters, digits, _, -, . and :"
		}
	}
	return ""
}

// CompareRelations orders relations by their ends and name.
func CompareRelations(a, b Relation) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Name, b.Name), cmp.Compare(a.To, b.To), a.End.Compare(b.End))
}

// MaxRelations bounds the relations that a record is saved with.
const MaxRelations = 100

// checkRelations checks the initial relations of a record.
func checkRelations(r Record) error {
	if len(r.Relations) > MaxRelations {
		return invalid.Field(ErrInvalid, "relations", "has %d items, more than %d", len(r.Relations), MaxRelations)
	}
	for _, one := range r.Relations {
		one.From = cmp.Or(r.ID, "\ufffd") // which is not known yet
		if err := one.Check(); err != nil {
			return err
		}
	}
	return nil
}
