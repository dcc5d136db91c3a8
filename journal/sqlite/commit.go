package sqlite

import "time"

// Commit tells of one transaction of the writer that was made durable.
type Commit struct {
	Appends   int           // that share it
	Events    int           // of these appends
	Conflicts int           // appends of the group that were refused
	Took      time.Duration // the transaction with its sync; not the wait for it
}

// account is what a group came to. It is made before the group is answered: from
// then on the batches are their owners' again.
func account(group []*request, took time.Duration) Commit {
	c := Commit{Took: took}
	for _, r := range group {
		if r.err != nil {
			c.Conflicts++
			continue
		}
		c.Appends++
		for _, part := range r.batch {
			c.Events += len(part.Events)
		}
	}
	return c
}

// tell calls the hook. It is the host's, so it stops no write, whatever it does.
func (w *writer) tell(c Commit) {
	defer func() { _ = recover() }()
	w.onCommit(c)
}
