package browser

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/parley-run/parley/body"
)

const (
	// pause lies between the two looks of a check: a process that forks while it
	// is looked for shows in the second.
	pause = 50 * time.Millisecond

	// courtesy is how long Chromium may take to write its profile and to end by
	// itself, before it is killed.
	courtesy = 3 * time.Second

	// maxMessageBytes bounds one message of Chromium's. What a page can make larger
	// than that costs it its browser, not us our memory.
	maxMessageBytes = 64 << 20

	// maxComplaint bounds what is kept of the output of a Chromium that does not
	// start.
	maxComplaint = 4 << 10
)

// identity names a process so that no later one is taken for it.
type identity struct {
	PID     int    `json:"pid"`
	Started uint64 `json:"started"` // clock ticks from boot to its start
}

// process is a Chromium that this process started. It dies with this process: by
// the end of its pipe, and by the death signal of the kernel.
type process struct {
	identity
	pipe      chromedp.Transport
	complaint *tail         // the end of what it said
	done      chan struct{} // closed when it has ended and was waited for
}

// spawn starts Chromium over a pipe.
func spawn(program string, arguments, environment []string) (*process, error) {
	theirs, ours, err := pipes()
	if err != nil {
		return nil, err
	}
	p := &process{complaint: &tail{}, done: make(chan struct{})}
	cmd := exec.Command(program, arguments...)
	cmd.Env = environment
	cmd.ExtraFiles = theirs // its descriptors 3 and 4
	cmd.Stdout, cmd.Stderr = p.complaint, p.complaint
	cmd.WaitDelay = time.Second // for a child that holds the output open
	cmd.SysProcAttr = mortal()
	started := make(chan error, 1)
	go func() {
		// The death signal is sent when the thread ends that forked: it has to live
		// as long as Chromium does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(p.done)
		}
	}()
	err = <-started
	closeAll(theirs)
	if err != nil {
		closeAll(ours)
		return nil, err
	}
	p.pipe = chromedp.NewPipeConn(&bounded{ReadCloser: ours[0]}, ours[1])
	if p.identity, err = identify(cmd.Process.Pid); err != nil {
		_ = cmd.Process.Kill()
		<-p.done // it is not there any more, or nobody could prove its end
		_ = p.pipe.Close()
		return nil, p.whyEnded()
	}
	return p, nil
}

// whyEnded says with what words a process ended.
func (p *process) whyEnded() error { return fmt.Errorf("it ended: %q", p.complaint.last()) }

// pipes makes the two pipes: what Chromium reads and writes, and what we do.
func pipes() (theirs, ours []*os.File, err error) {
	commandR, commandW, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	answerR, answerW, err := os.Pipe()
	if err != nil {
		closeAll([]*os.File{commandR, commandW})
		return nil, nil, err
	}
	return []*os.File{commandR, answerW}, []*os.File{answerR, commandW}, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// bounded ends a stream in which a message is too long.
type bounded struct {
	io.ReadCloser
	n int // bytes since the end of the last message
}

func (b *bounded) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if end := bytes.LastIndexByte(into[:n], 0); end >= 0 {
		b.n = n - end - 1
	} else {
		b.n += n
	}
	if b.n > maxMessageBytes {
		return 0, fmt.Errorf("a message of Chromium has more than %d bytes", maxMessageBytes)
	}
	return n, err
}

// gone proves that no process of a profile is left, by looking twice. Otherwise:
// body.ErrAlive.
func gone(ctx context.Context, profile string) error {
	for look := range 2 {
		if look > 0 {
			if err := sleep(ctx, pause); err != nil {
				return err
			}
		}
		all, err := living(profile)
		if err != nil {
			return err
		}
		if len(all) > 0 {
			return fmt.Errorf("%w: %d processes of Chromium", body.ErrAlive, len(all))
		}
	}
	return nil
}

// finish ends all processes of a profile: it asks the first of them to end, and
// kills what is left after a while. It returns when there is none.
func finish(ctx context.Context, profile string) error {
	all, err := living(profile)
	if err != nil {
		return err
	}
	for _, id := range all {
		if !child(id.PID) {
			id.signal(profile, syscall.SIGTERM)
		}
	}
	for patience := time.Now().Add(courtesy); len(all) > 0; {
		if err := sleep(ctx, pause/5); err != nil {
			return err
		}
		if all, err = living(profile); err != nil {
			return err
		}
		if time.Now().After(patience) {
			for _, id := range all {
				id.signal(profile, syscall.SIGKILL)
			}
		}
	}
	return nil
}

// sweepSocket removes the socket that a killed Chromium left in the folder for
// temporary files.
func sweepSocket(profile string) {
	socket, err := os.Readlink(filepath.Join(profile, "SingletonSocket"))
	folder := filepath.Dir(socket)
	if err == nil && filepath.Dir(folder) == filepath.Clean(os.TempDir()) && strings.Contains(filepath.Base(folder), "org.chromium.") {
		_ = os.RemoveAll(folder)
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	lines []byte
}

// Write implements [io.Writer]. exec.Cmd calls it from one goroutine.
func (t *tail) Write(p []byte) (int, error) {
	t.lines = append(t.lines, p...)
	if over := len(t.lines) - maxComplaint; over > 0 {
		t.lines = slices.Clone(t.lines[over:])
	}
	return len(p), nil
}

// last returns the last line that was written. Call it after the process ended.
func (t *tail) last() (line string) {
	for scan := bufio.NewScanner(bytes.NewReader(t.lines)); scan.Scan(); {
		if text := strings.TrimSpace(scan.Text()); text != "" {
			line = text
		}
	}
	return line
}
