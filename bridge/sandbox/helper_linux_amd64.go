package sandbox

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// machine is what a Local has of this machine.
type machine struct {
	program struct {
		once sync.Once
		file *os.File
		err  error
	}
	launcher  launcher
	pool      pool
	scratches scratches
}

// helper returns the program of the stages: the embedded one, as a sealed file in
// memory that cannot be changed, else that of this process.
func (m *machine) helper() (*os.File, error) {
	m.program.once.Do(func() {
		if len(embedded) > 0 {
			if m.program.file, m.program.err = sealed(embedded); m.program.err == nil {
				return
			}
		}
		m.program.file, m.program.err = os.Open("/proc/self/exe")
	})
	return m.program.file, m.program.err
}

func sealed(program []byte) (*os.File, error) {
	n, err := unix.MemfdCreate("loom-sandbox-helper", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("sandbox: memfd: %w", err)
	}
	file := os.NewFile(uintptr(n), "loom-sandbox-helper")
	_, err = file.Write(program)
	if err == nil {
		_, err = unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	}
	if err != nil {
		_ = file.Close() // nothing uses it
		return nil, fmt.Errorf("sandbox: helper: %w", err)
	}
	return file, nil
}

func (m *machine) release() error {
	m.pool.end()
	m.launcher.end()
	err := m.scratches.release()
	if m.program.file == nil {
		return err
	}
	return errors.Join(err, m.program.file.Close())
}
