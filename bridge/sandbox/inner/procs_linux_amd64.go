package inner

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// watchEvery is the time between two looks at what runs.
	watchEvery = 25 * time.Millisecond
	// maxWatchedFiles bounds the descriptors of one process that are looked at.
	maxWatchedFiles = 256
)

// loopbackUp turns the loopback of a new network on.
func loopbackUp() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
}

// processes lists the descendants of the first stage.
func (s *supervisor) processes() []int {
	if s.spec.with(LayerPID) {
		if !s.spec.with(LayerMount) {
			return nil // its /proc is the machine's
		}
		return numbers("/proc", 1)
	}
	return descendants(os.Getpid())
}

// numbers lists the processes that a /proc shows, less one.
func numbers(proc string, but int) []int {
	folder, err := os.Open(proc)
	if err != nil {
		return nil
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(-1) // what was read until then
	var found []int
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n != but {
			found = append(found, n)
		}
	}
	return found
}

// descendants lists the processes below one, from what the kernel keeps of each thread.
func descendants(of int) []int {
	var found []int
	open := []int{of}
	for len(open) > 0 && len(found) < 1<<16 {
		pid := open[0]
		open = open[1:]
		for _, task := range numbers("/proc/"+strconv.Itoa(pid)+"/task", 0) {
			text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(task) + "/children")
			if err != nil {
				continue // it has ended
			}
			for _, word := range strings.Fields(string(text)) {
				if n, err := strconv.Atoi(word); err == nil {
					found, open = append(found, n), append(open, n)
				}
			}
		}
	}
	return found
}

// killAll kills everything but the first stage. Without a namespace it stops first what
// it finds, until nothing new is found, so that nothing escapes by forking.
func (s *supervisor) killAll() {
	if s.spec.with(LayerPID) {
		_ = unix.Kill(-1, unix.SIGKILL) // there may be none
		return
	}
	seen := map[int]bool{os.Getpid(): true}
	for range 100 {
		fresh := false
		for _, pid := range s.processes() { // parents before their children
			if !seen[pid] && send(pid, unix.SIGSTOP, seen) {
				seen[pid], fresh = true, true
			}
		}
		if !fresh {
			break
		}
	}
	for pid := range seen {
		if pid != os.Getpid() {
			send(pid, unix.SIGKILL, seen)
		}
	}
}

// send sends a signal to a process whose parent is one of some, and reports whether it did.
// A process that ended meanwhile may have left its number to anybody on the machine:
// its owner is held by a descriptor while its parent is looked up.
func send(pid int, sig unix.Signal, parents map[int]bool) bool {
	process, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ENOSYS) { // before Linux 5.3
		return parents[statusOf(pid, "PPid:")] && unix.Kill(pid, sig) == nil
	}
	if err != nil {
		return false // it has ended
	}
	defer unix.Close(process)
	return parents[statusOf(pid, "PPid:")] && unix.PidfdSendSignal(process, sig, nil, 0) == nil
}

// watch ends the run when it takes more than it may of what no kernel limit bounds.
func (s *supervisor) watch(ended <-chan struct{}) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		if limit := s.over(); limit != "" {
			s.exceed(limit)
			s.killAll()
		}
	}
}

// over names a limit that is exceeded; empty for none.
func (s *supervisor) over() string {
	l := s.spec.Limits
	pids := s.processes()
	if l.Processes > 0 && len(pids) > l.Processes {
		return LimitProcesses
	}
	if l.Memory > 0 && memoryOf(pids, l.Memory) > l.Memory {
		return LimitMemory
	}
	if l.DiskFloor > 0 && free(s.spec.Workspace.Path) < l.DiskFloor {
		return LimitDisk
	}
	return ""
}

// free is the room on the disk of a place that the tool may still take.
func free(place string) int64 {
	var stat unix.Statfs_t
	if err := unix.Statfs(place, &stat); err != nil || stat.Blocks == 0 {
		return 1<<63 - 1
	}
	return int64(stat.Bavail) * stat.Bsize
}

// memoryOf is what processes hold in memory that nothing on disk backs, memfds that
// are open included. It stops counting beyond enough.
func memoryOf(pids []int, enough int64) int64 {
	page := int64(os.Getpagesize())
	files := map[uint64]int64{}
	var sum int64
	for _, pid := range pids {
		folder := "/proc/" + strconv.Itoa(pid)
		text, err := os.ReadFile(folder + "/statm")
		if err != nil {
			continue // it has ended
		}
		fields := bytes.Fields(text)
		if len(fields) > 2 {
			resident, _ := strconv.ParseInt(string(fields[1]), 10, 64) // the kernel writes numbers
			shared, _ := strconv.ParseInt(string(fields[2]), 10, 64)
			sum += (resident - shared) * page
		}
		memfds(folder+"/fd", files)
		if sum > enough {
			return sum
		}
	}
	for _, size := range files {
		sum += size
	}
	return sum
}

// memfds adds the sizes of the memory files that are open, by inode.
func memfds(folder string, sizes map[uint64]int64) {
	names := numbers(folder, -1)
	for _, n := range names[:min(len(names), maxWatchedFiles)] {
		path := folder + "/" + strconv.Itoa(n)
		to, err := os.Readlink(path)
		if err != nil || !strings.HasPrefix(to, "/memfd:") && !strings.HasPrefix(to, "/dev/shm/") {
			continue
		}
		var stat unix.Stat_t
		if unix.Stat(path, &stat) == nil {
			sizes[stat.Ino] = stat.Blocks * 512
		}
	}
}

// hear takes what the second stage says until it has become the tool, or has ended.
func (s *supervisor) hear(answers int) {
	defer unix.Close(answers)
	buffer, rights := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4))
	for {
		n, oob, _, _, err := unix.Recvmsg(answers, buffer, rights, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return
		}
		s.take(buffer[:n], rights[:oob])
	}
}

// ioctl is one on a descriptor of seccomp's.
func ioctl(file int, request uintptr, arg unsafe.Pointer) unix.Errno {
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(file), request, uintptr(arg))
	return e
}

// ioctlValue is one whose argument is a number.
func ioctlValue(file int, request, value uintptr) unix.Errno {
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(file), request, value)
	return e
}
