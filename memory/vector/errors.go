package vector

import (
	"errors"
	"fmt"
)

// Errors of vectors.
var (
	// ErrDimension: a vector has another dimension than its space;
	// *DimensionError says which.
	ErrDimension = errors.New("vector: dimension does not fit the space")
	// ErrInvalid: a vector is empty, too long or holds a number that is not
	// finite, or a space has no name or a long one.
	ErrInvalid = errors.New("vector: invalid vector")
	// ErrTooManySpaces: a scope has MaxSpaces spaces.
	ErrTooManySpaces = errors.New("vector: too many spaces in the scope")
	// ErrFull: a space can number no more vectors.
	ErrFull = errors.New("vector: space is full")
)

// Errors of the stored data.
var (
	// ErrDamaged: a stored entry can't be read.
	ErrDamaged = errors.New("vector: stored entry is damaged")
	// ErrNewer: an entry was written in a format that this version can't read.
	ErrNewer = errors.New("vector: stored entry has a newer format")
)

// DimensionError says which space expects what. It is an ErrDimension.
type DimensionError struct {
	// Space is the name of the space.
	Space string
	// Want is the dimension of the space's vectors.
	Want int
	// Got is the dimension of the vector at hand.
	Got int
}

func (e *DimensionError) Error() string {
	return fmt.Sprintf("vector: space %q has vectors of %d numbers, this one has %d", e.Space, e.Want, e.Got)
}

// Is makes errors.Is(err, ErrDimension) true.
func (e *DimensionError) Is(target error) bool { return target == ErrDimension }
