;;; restoration-waiting.el --- Files that are not visited yet  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; A file that might ask when it is visited, or that is not there, gets a buffer that stands for it.  Until the user
;; visits the file, or kills the buffer, what is saved of it stays as it is.

;;; Code:

(require 'cl-lib)
(require 'subr-x)

(defvar inhibit-interaction)  ; since Emacs 28

(defvar-local restoration--waiting nil "The element of the state of the file that this buffer stands for, or nil.")
(put 'restoration--waiting 'permanent-local t)
(defvar-local restoration--has-tried nil "The file was to be visited when this buffer was selected, and was not.")

(defun restoration--local-name (file)
  "FILE as a whole name, or nil if it is not one.
It is made without handlers of special names: \"/a/../ssh:b:\" is a remote one
only after it."
  (when (stringp file)
    (let ((whole (let (file-name-handler-alist) (expand-file-name file "/"))))
      (and (string-prefix-p "/" whole) whole))))

(defun restoration--reason-to-wait (file)
  "Why FILE, a whole name, must not be visited unasked; nil if it may be.
What is saved is not trusted: a remote name runs programs."
  (cond ((file-remote-p file) 'remote)
        ((not (memq (find-file-name-handler file 'insert-file-contents) '(nil jka-compr-handler)))
         "visiting it may ask for something, such as a passphrase")
        ((not (file-directory-p (file-name-directory file))) "its directory is not there")
        ((and (file-exists-p file) (not (file-readable-p file))) "it cannot be read")))

(defvar restoration-waiting-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'restoration-visit)
    map)
  "Keymap of `restoration-waiting-mode'.")

(define-derived-mode restoration-waiting-mode special-mode "Waiting"
  "Major mode of a buffer that stands for a file that is not visited yet."
  (setq-local revert-buffer-function (lambda (&rest _) (restoration-visit)))
  (add-hook 'post-command-hook #'restoration--selected nil t))

(defun restoration--wait (each file reason)
  "A buffer that stands for FILE, which must wait for REASON.
EACH is the element of the state."
  (or (seq-find (lambda (buffer)
                  (equal (plist-get (buffer-local-value 'restoration--waiting buffer) :file) (plist-get each :file)))
                (buffer-list))
      (let* ((name (let (file-name-handler-alist) (file-name-nondirectory (directory-file-name file))))
             (buffer (generate-new-buffer (if (string-empty-p name) file name))))
        (with-current-buffer buffer
          ;; First, since what is saved may have a member of that name.
          (setq restoration--waiting `(:reason ,reason ,@each))
          (restoration--say-why))
        buffer)))

(defun restoration--say-why ()
  "Make the current buffer one that stands for a file."
  (restoration-waiting-mode)
  (let ((inhibit-read-only t)
        (reason (plist-get restoration--waiting :reason)))
    (erase-buffer)
    (insert (format-message "%s\n\nis not visited yet: %s.\n" (plist-get restoration--waiting :file)
                            (if (eq reason 'remote) "it is on another host" reason))
            (if (eq reason 'remote) "" "It is visited when you come to this window.\n")
            "RET visits it.  Until then it stays in what is saved; kill this buffer to give it up.\n"))
  (set-buffer-modified-p nil)
  (goto-char (point-min)))

(defun restoration--selected ()
  "The user has come to the current buffer: visit its file, once.
A remote file needs a command: what is saved could name any host."
  (unless (or restoration--has-tried (eq (plist-get restoration--waiting :reason) 'remote)
              (not (eq (current-buffer) (window-buffer))))
    (setq restoration--has-tried t)
    ;; Not in a hook, where the user could not quit.
    (run-with-timer 0 nil (lambda (buffer)
                            (when (and (buffer-live-p buffer) (eq buffer (window-buffer)))
                              (with-local-quit (with-current-buffer buffer (restoration-visit)))))
                    (current-buffer))))

(declare-function restoration--apply "restoration-layout")
(declare-function restoration--in-hidden-tab-p "restoration-layout")

(defun restoration-visit ()
  "Visit the file that this buffer stands for, and show it instead."
  (interactive)
  (let* ((each (or restoration--waiting (user-error "This buffer stands for no file")))
         (buffer (current-buffer))
         (file (restoration--local-name (plist-get each :file)))
         (known (get-file-buffer file)))
    (if (or known (file-exists-p file) (file-directory-p (file-name-directory file)))
        ;; If that fails, everything is as it was.
        (let ((visited (or known (find-file-noselect file))))
          (unless known (with-current-buffer visited (restoration--apply each)))
          (restoration--replace buffer visited))
      (setq restoration--has-tried nil)
      (message "%s: its directory is not there" file))))

(defun restoration--replace (buffer visited)
  "Show VISITED, which visits the file, where BUFFER is shown, which stands for it."
  (let ((name (buffer-name buffer)))
    (dolist (window (get-buffer-window-list buffer nil t))
      (set-window-buffer window visited)
      (set-window-point window (with-current-buffer visited (point))))
    (if (restoration--in-hidden-tab-p buffer)
        ;; When the tab is selected, the file is visited already.
        (with-current-buffer buffer (setq restoration--has-tried nil))
      (kill-buffer buffer)
      (with-current-buffer visited (ignore-errors (rename-buffer name))))))

(defun restoration--is-visited-p (buffer)
  "Whether BUFFER stands for a file that is visited meanwhile."
  (let ((file (plist-get (buffer-local-value 'restoration--waiting buffer) :file)))
    (and file (let (file-name-handler-alist) (get-file-buffer file)))))

(provide 'restoration-waiting)
;;; restoration-waiting.el ends here
