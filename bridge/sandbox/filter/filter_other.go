//go:build !linux || !amd64

package filter

// Assemble returns ErrUnsupported.
func Assemble(Options) ([]Instruction, error) { return nil, ErrUnsupported }
