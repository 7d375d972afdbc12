package jobs

import (
	"fmt"
	"os"
	"sync"
)

// spool keeps the newest bytes written to it, in an unnamed file. All methods are safe for
// concurrent use.
type spool struct {
	file  *os.File
	limit int64

	mu   sync.Mutex
	size int64         // guarded by mu; of all that was written
	more chan struct{} // guarded by mu; closed by the next write
}

func newSpool(dir string, limit int64) (*spool, error) {
	file, err := os.CreateTemp(dir, "loom-job-")
	if err != nil {
		return nil, fmt.Errorf("jobs: output: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		_ = file.Close() // nothing was written
		return nil, fmt.Errorf("jobs: output: %w", err)
	}
	return &spool{file: file, limit: limit, more: make(chan struct{})}, nil
}

// Write adds bytes, over the oldest ones where there is no room.
func (s *spool) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(p)
	if over := int64(n) - s.limit; over > 0 {
		p = p[over:]
		s.size += over
	}
	for len(p) > 0 {
		at := s.size % s.limit
		part := p[:min(int64(len(p)), s.limit-at)]
		if _, err := s.file.WriteAt(part, at); err != nil {
			return 0, fmt.Errorf("jobs: output: %w", err)
		}
		s.size += int64(len(part))
		p = p[len(part):]
	}
	close(s.more)
	s.more = make(chan struct{})
	return n, nil
}

// read returns at most limit bytes from an offset on, where they begin, and what will be
// closed when there are more. What is not kept any more is passed over.
func (s *spool) read(offset int64, limit int) (data []byte, begin int64, more <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	begin = min(max(offset, s.size-s.limit, 0), s.size)
	data = make([]byte, min(int64(limit), s.size-begin))
	for done := 0; done < len(data); {
		at := (begin + int64(done)) % s.limit
		part := data[done:min(int64(len(data)), int64(done)+s.limit-at)]
		if _, err := s.file.ReadAt(part, at); err != nil {
			return nil, 0, nil, fmt.Errorf("jobs: output: %w", err)
		}
		done += len(part)
	}
	return data, begin, s.more, nil
}

// total is how many bytes were written.
func (s *spool) total() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

func (s *spool) close() { _ = s.file.Close() } // it has no name: nothing is lost
