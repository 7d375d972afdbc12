package read

import (
	"context"
	"fmt"
)

// How many prompts may hold much text at once. A prompt of a usual size, which
// takes less than smallReadBytes, never waits.
const (
	smallReadBytes = 1 << 20
	// maxLarge of them may hold DefaultBytes, and maxHuge of these more: half
	// a gigabyte of text in all.
	maxLarge = 8
	maxHuge  = 1
)

// holds waits until the moment may hold so many bytes of text.
func (m *Moment) holds(ctx context.Context, bytes int) error {
	if !m.large && bytes > min(smallReadBytes, m.source.bytes) {
		if err := enter(ctx, m.source.large); err != nil {
			return err
		}
		m.large = true
	}
	// Who waits here has a large place, but who has the huge one waits for no
	// other.
	if !m.huge && bytes > 2*m.source.bytes {
		if err := enter(ctx, m.source.huge); err != nil {
			return err
		}
		m.huge = true
	}
	return nil
}

func enter(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("assemble: read history: %w", ctx.Err())
	}
}

// release gives back what holds took.
func (m *Moment) release() {
	if m.large {
		<-m.source.large
	}
	if m.huge {
		<-m.source.huge
	}
	m.large, m.huge = false, false
}

// Room is how much text is read at once if it can be folded before more is read.
func (m *Moment) Room() int { return m.source.bytes }
