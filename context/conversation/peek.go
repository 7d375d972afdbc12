package conversation

import "iter"

// peek is a sequence whose next value can be seen before it is taken.
type peek[T any] struct {
	// value and err are next; ok reports whether there is a next.
	value T
	err   error
	ok    bool

	pull func() (T, error, bool)
	stop func()
}

func newPeek[T any](seq iter.Seq2[T, error]) *peek[T] {
	p := &peek[T]{}
	p.pull, p.stop = iter.Pull2(seq)
	p.next()
	return p
}

// next takes the next value.
func (p *peek[T]) next() T {
	value := p.value
	p.value, p.err, p.ok = p.pull()
	return value
}
