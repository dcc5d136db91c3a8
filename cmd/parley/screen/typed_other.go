//go:build !unix

package screen

import "os"

// typedBefore is empty where a console keeps keys as they are pressed.
func typedBefore(*os.File) string { return "" }
