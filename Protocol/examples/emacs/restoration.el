;;; restoration.el --- Windows and files survive a crash  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: Apache-2.0
;; Version: 1.0
;; Package-Requires: ((emacs "27.1"))
;; Keywords: convenience, frames

;;; Commentary:

;; `restoration-mode' keeps frames, windows and visited files with restorationd while Emacs runs, and brings them back
;; when Emacs was killed and is started again without files.  Put (restoration-mode 1) into the init file.

;;; Code:

(require 'cl-lib)
(require 'jsonrpc)
(require 'restoration-layout)
(require 'restoration-objects)
(require 'subr-x)

(defgroup restoration nil "Windows and files survive a crash." :group 'environment)

(defcustom restoration-on-quit 'userQuit
  "What happens to the state when you quit Emacs yourself."
  :type '(choice (const :tag "The next Emacs begins afresh" userQuit)
                 (const :tag "The next Emacs goes on here" restart)))

(defcustom restoration-socket nil
  "The broker's socket; nil for the default one."
  :type '(choice (const nil) file))

(defcustom restoration-application "org.gnu.Emacs"
  "The application's name at the broker; each Emacs is an instance of it."
  :type 'string)

(defvar restoration-restored-hook nil "Run when frames and windows of an earlier Emacs are there again.")
(defvar restoration-ready-hook nil "Run when the state is kept from now on; after `restoration-restored-hook'.")

(defconst restoration--none (make-hash-table) "An empty JSON object.")
(defconst restoration--quiet 0.4 "Seconds from a change to the call that tells of it.")
(defconst restoration--idle 2 "Seconds without input after which everything is looked at.")
(defconst restoration--retry-first 0.25)
(defconst restoration--retry-last 10.0)
(defconst restoration--goodbye 0.3 "Seconds that the end may take.")

(defvar restoration--phase 'idle "One of idle, connecting, restoring, kept, over.")
(defvar restoration--retry restoration--retry-first)
(defvar restoration--connection nil)
(defvar restoration--token nil)
(defvar restoration--whole-name nil "The application with the instance that the broker gave.")
(defvar restoration--instance nil "An instance of our own, where an earlier one is not wanted.")
(defvar restoration--timer nil)
(defvar restoration--idle-timer nil)
(defvar restoration--has-changed nil "Something may have changed since everything was looked at.")
(defvar restoration--selected nil "The window in which the user was after the last command or call.")
(defvar restoration--quitting nil
  "The depth of recursive edits at which the user quits Emacs, or nil.")

;;;; The connection

(defun restoration--path ()
  "The broker's socket, or nil."
  (let ((directory (getenv "XDG_RUNTIME_DIR")))
    (or restoration-socket
        (let ((path (getenv "RESTORATIOND_SOCKET"))) (and path (not (string-empty-p path)) path))
        (and directory (not (string-empty-p directory)) (concat directory "/restorationd/broker.sock")))))

(defun restoration--open-p ()
  "Whether the broker is connected."
  (and restoration--connection (jsonrpc-running-p restoration--connection)))

(defun restoration--request (method params &optional success failed)
  "Call METHOD with PARAMS, then SUCCESS with the result, or FAILED with an error."
  (let ((connection restoration--connection))
    (jsonrpc-async-request connection method params
                           :timeout nil
                           :success-fn (lambda (result)
                                         (when success (restoration--later connection success result)))
                           :error-fn (lambda (failure)
                                       (restoration--later connection (or failed #'restoration--failed) failure)))))

(defun restoration--later (connection function argument)
  "Call FUNCTION with ARGUMENT, unless CONNECTION is lost.
Not now, while it is being read: what sends much has to wait for the broker, and
Emacs would read on meanwhile, in the middle of a message."
  (run-with-timer 0 nil (lambda ()
                          (when (and (eq connection restoration--connection) (restoration--open-p))
                            (restoration--quietly (funcall function argument))))))

(defun restoration--notify (method params)
  "Call METHOD with PARAMS, without an answer."
  (jsonrpc-notify restoration--connection method params))

(defun restoration--failed (failure)
  "The broker refused with FAILURE."
  (cond ((eq restoration--phase 'over))
        ;; Another Emacs has taken this instance over meanwhile.
        ((equal (plist-get (plist-get failure :data) :kind) "duplicatePath") (restoration--leave))
        (t (setq restoration--phase 'over)
           (restoration--tell "%s" (plist-get failure :message)))))

(defun restoration--connect ()
  "Connect to the broker, now or later."
  (when (memq restoration--phase '(connecting restoring kept))
    (let ((process (and (restoration--path)
                        (ignore-errors
                          (make-network-process :name "restoration" :family 'local :service (restoration--path)
                                                :coding 'utf-8-emacs-unix :noquery t)))))
      (if process
          (restoration--quietly (restoration--connected process))
        (restoration--again)))))

(defun restoration--again ()
  "Connect again after a while."
  (run-with-timer restoration--retry nil #'restoration--connect)
  (setq restoration--retry (min (* 2 restoration--retry) restoration--retry-last)))

(defun restoration--connected (process)
  "Continue with PROCESS, the connection."
  (setq restoration--connection
        (apply #'jsonrpc-process-connection
               :name "restoration"
               :process process
               :request-dispatcher #'restoration--answer
               :notification-dispatcher #'ignore
               :on-shutdown #'restoration--lost
               (if (>= emacs-major-version 30)
                   '(:events-buffer-config (:size 0))
                 '(:events-buffer-scrollback-size 0))))
  ;; The user need not know that a connection has ended.
  (let ((sentinel (process-sentinel process)))
    (set-process-sentinel process (lambda (process change)
                                    (let ((inhibit-message t) message-log-max)
                                      (funcall sentinel process change)))))
  (restoration--initialize))

(defun restoration--lost (connection)
  "CONNECTION has ended."
  (ignore-errors (kill-buffer (jsonrpc-events-buffer connection)))
  (ignore-errors (jsonrpc-shutdown connection t))
  (when (and (eq connection restoration--connection) (not (eq restoration--phase 'over)))
    (setq restoration--connection nil)
    (restoration--again)))

;;;; Changes

(defun restoration--changed (&rest _)
  "Something may have changed.  Looked at once within `restoration--quiet' seconds."
  (when (eq restoration--phase 'kept)
    (setq restoration--has-changed t)
    (cl-pushnew (current-buffer) restoration--buffers-changed)
    (unless restoration--timer
      (setq restoration--timer (run-with-timer restoration--quiet nil #'restoration--tell-changes)))))

(defun restoration--command-done ()
  "A command of the user is done."
  (restoration--note-selected)
  (restoration--changed))

(defun restoration--note-selected ()
  "Remember in which window the user is."
  (setq restoration--selected (restoration--selected-window (selected-frame))))

(defun restoration--windows-changed ()
  "Windows of the selected frame have changed."
  (when (eq restoration--phase 'kept)
    (cl-pushnew (selected-frame) restoration--frames-changed)
    (restoration--note-hidden-tabs (selected-frame))
    (restoration--changed)))

(defun restoration--tell-changes ()
  "Tell the broker what has changed where the user is."
  (setq restoration--timer nil)
  (restoration--tell-broker nil))

(defun restoration--tell-all-changes ()
  "Tell the broker what has changed anywhere."
  (when restoration--has-changed
    (setq restoration--has-changed nil)
    (restoration--tell-broker t)))

(defun restoration--tell-broker (all)
  "Tell the broker what has changed where the user is, or ALL that has."
  (when (and (eq restoration--phase 'kept) (restoration--open-p))
    (restoration--note-selected)
    (restoration--quietly (restoration--sync all))))

(defun restoration--answer (_connection method params)
  "Answer the broker's call of METHOD with PARAMS: what has changed is sent before."
  (unless (eq method 'encodeRestorableStateWithCoder) (jsonrpc-error "not served: %s" method))
  (restoration--tell-broker t)
  (list :states (vconcat (mapcar (lambda (each) (list :object (plist-get each :object) :unchanged t))
                                 (plist-get params :objects)))))

;;;; The beginning

(defun restoration--affinity ()
  "Where the user works, so that an Emacs that was started there comes back there."
  (let ((directory command-line-default-directory))
    ;; A name that is not UTF-8 cannot be written as JSON.
    (and (ignore-errors (json-serialize (vector directory))) (list :affinity directory))))

(defun restoration--initialize ()
  "Open a session, or resume it."
  (unless (eq restoration--phase 'kept) (setq restoration--phase 'connecting))
  (restoration--request
   'initialize
   `(:application ,(or restoration--whole-name restoration-application)
     ,@(unless restoration--whole-name (list :instance (or restoration--instance "auto")))
     ,@(restoration--affinity)
     ,@(and restoration--token (list :session restoration--token))
     :process "emacs" :bundleVersion ,emacs-version :serves ["encodeRestorableStateWithCoder"])
   (lambda (result)
     (let ((resumed (equal restoration--token (plist-get result :session))))
       (setq restoration--token (plist-get result :session)
             restoration--whole-name (plist-get result :application)
             restoration--retry restoration--retry-first
             restoration--state-bytes (plist-get (plist-get result :limits) :stateBytesMax))
       (cond ((and resumed (eq restoration--phase 'kept))
              (restoration--resume-objects)
              (setq restoration--has-changed nil)
              (restoration--tell-broker t))
             (t (restoration--forget-objects)
                (restoration--register)))))))

(defun restoration--register ()
  "Register the objects and ask for their states."
  (restoration--request 'registerObjectForStateRestoration
                        '(:restorationIdentifier "Editor" :kind "viewController" :objectClass "EmacsEditor"))
  (restoration--request 'registerObjectForStateRestoration
                        '(:restorationIdentifier "Buffers" :restorationParent ["Editor"] :objectClass "EmacsBuffers"))
  (dolist (name '("Editor" "Buffers"))
    (puthash name (restoration--make-object :name name) restoration--objects))
  (let (editor)
    (restoration--request 'decodeRestorableState '(:object ["Editor"])
                          (lambda (result)
                            (restoration--tell-withheld result)
                            (setq editor (plist-get result :state))))
    (restoration--request 'decodeRestorableState '(:object ["Editor" "Buffers"])
                          (lambda (result)
                            (restoration--tell-withheld result)
                            (restoration--decoded editor (plist-get result :state))))))

(defun restoration--decoded (editor buffers)
  "Go on with EDITOR and BUFFERS, the saved states, or nil."
  (if (and (eq restoration--phase 'connecting) (or editor buffers))
      (let ((names (restoration--quietly (restoration--tabs-of editor))))
        (setq restoration--phase 'restoring
              restoration--withheld nil
              restoration--last-tab (apply #'max 0 (mapcar (lambda (name) (string-to-number (substring name 4)))
                                                           names)))
        (restoration--fetch names
                            (lambda (windows)
                              (restoration--when-quiet restoration--connection editor windows buffers))))
    (restoration--request 'completeStateRestoration restoration--none)
    (restoration--kept)))

(defun restoration--own-instance ()
  "A name for a new instance."
  (format-time-string (format "%%Y%%m%%dT%%H%%M%%S-%d" (emacs-pid)) nil t))

(defun restoration--leave ()
  "Leave this instance to the other Emacs, and continue in an instance of our own."
  (setq restoration--token nil
        restoration--whole-name nil
        restoration--instance (restoration--own-instance))
  (restoration--request 'goodbye '(:reason "restart") (lambda (_) (restoration--initialize))))

(defun restoration--when-quiet (connection editor windows buffers)
  "Restore what came over CONNECTION, unless the user is busy.
EDITOR and BUFFERS are the states, WINDOWS has those of tabs by name."
  (when (and (eq connection restoration--connection) (restoration--open-p))
    (cond ((not (restoration--pristine-p)) (restoration--quietly (restoration--leave)))
          ((or (active-minibuffer-window) (> (recursion-depth) 0) (input-pending-p))
           (run-with-timer 0.05 nil #'restoration--when-quiet connection editor windows buffers))
          (t (restoration--quietly
               (setq restoration--queue (seq-filter #'restoration--text (plist-get buffers :buffers)))
               (restoration--restore (restoration--frames-of editor windows)))
             ;; When Emacs has nothing else to do.
             (restoration--visit-next)
             (restoration--quietly
               (restoration--request 'completeStateRestoration restoration--none)
               (restoration--quietly (run-hooks 'restoration-restored-hook))
               (restoration--kept))))))

(defun restoration--kept ()
  "From now on the state is saved."
  (setq restoration--phase 'kept)
  (add-hook 'post-command-hook #'restoration--command-done)
  (add-hook 'window-configuration-change-hook #'restoration--windows-changed)
  (add-hook 'after-delete-frame-functions #'restoration--changed)
  (unless restoration--idle-timer
    (setq restoration--idle-timer (run-with-idle-timer restoration--idle t #'restoration--tell-all-changes)))
  (restoration--tell-broker t)
  (restoration--quietly (run-hooks 'restoration-ready-hook)))

;;;; The end

(defun restoration--quit-asked ()
  "The user quits Emacs, unless a later question is declined; always t."
  (setq restoration--quitting (recursion-depth))
  (add-hook 'post-command-hook #'restoration--quit-declined)
  t)

(defun restoration--quit-declined ()
  "Emacs still runs after a command.
One in a question of the command that quits does not count."
  (when (and restoration--quitting (<= (recursion-depth) restoration--quitting))
    (setq restoration--quitting nil)
    (remove-hook 'post-command-hook #'restoration--quit-declined)))

(defun restoration--is-signalled ()
  "Whether a signal ends Emacs, or the end of its terminal.
Emacs gives SIGHUP or SIGTERM its default action then; before, it catches or
ignores both, as the kernel tells in two masks."
  (ignore-errors
    (with-temp-buffer
      (insert-file-contents-literally "/proc/self/status")
      (let ((signals #x4001)
            (handled 0))
        (while (re-search-forward "^Sig\\(?:Ign\\|Cgt\\):[ \t]*\\([0-9a-f]+\\)$" nil t)
          (setq handled (logior handled (string-to-number (match-string 1) 16))))
        (/= (logand handled signals) signals)))))

(defun restoration--quits-p ()
  "Whether Emacs ends by its user's own word."
  (and (or restoration--quitting (eq this-command 'kill-emacs))
       (not (restoration--is-signalled))
       ;; If its last display is gone, Emacs ends by itself, also in a question, where it is idle.
       (not (current-idle-time))))

(defun restoration--draws-p ()
  "Whether a signal has come while Emacs draws a mode line.
The window of that is selected then."
  (and (restoration--is-signalled)
       (not (eq restoration--selected (restoration--selected-window (selected-frame))))))

(defun restoration--end ()
  "Say goodbye; a signal does not mean that the user quits."
  (let* ((phase restoration--phase)
         (reason (cond ((not (eq phase 'kept)) "restart")
                       ((restoration--quits-p) (symbol-name restoration-on-quit))
                       (t "logout"))))
    (setq restoration--phase 'over)
    (when (and restoration--token (restoration--open-p))
      ;; A signal may come in the middle of anything: what cannot be sent then must not take the goodbye with it.
      (ignore-errors
        (unless (or (equal reason "userQuit") (not (eq phase 'kept)) (restoration--draws-p))
          (restoration--sync t #'restoration--send-last)))
      (ignore-errors
        (jsonrpc-request restoration--connection 'goodbye (list :reason reason) :timeout restoration--goodbye)))))

;;;; Commands

(defun restoration--begin ()
  "Begin, unless Emacs was told what to open.
Its settings may have opened something."
  (when (and (eq restoration--phase 'idle) (not (restoration--named-p)))
    (restoration--note-settings)
    (restoration-start)))

;;;###autoload
(defun restoration-start ()
  "Save frames, windows and files from now on.
Restore earlier ones if nothing is open."
  (interactive)
  (when (and (eq restoration--phase 'idle) (not noninteractive) (not (daemonp)))
    (setq restoration--phase 'connecting)
    (unless (restoration--pristine-p) (setq restoration--instance (restoration--own-instance)))
    (add-hook 'kill-emacs-query-functions #'restoration--quit-asked)
    ;; First: while another function waits, a second signal may end Emacs, or the terminal that is gone.
    (add-hook 'kill-emacs-hook #'restoration--end -100)
    (restoration--connect)))

(defun restoration-status ()
  "Say whether frames, windows and files are saved."
  (interactive)
  (message "%s" (pcase restoration--phase
                  ('idle "Not kept: not started empty on a screen; M-x restoration-start begins.")
                  ('over "Not kept: see *Messages*.")
                  ((guard (and restoration--whole-name (restoration--open-p)))
                   (string-join (delq nil `(,(format "Kept as %s." restoration--whole-name) ,@(restoration--troubles)
                                            ,(restoration--auto-saves)))
                                " "))
                  ((guard (restoration--open-p)) "Not kept yet: the broker has not answered.")
                  (_ (format "Not kept: no broker at %s" (restoration--path))))))

;;;###autoload
(define-minor-mode restoration-mode
  "Keep frames, windows and files with restorationd, for after a crash."
  :global t
  (cond ((not restoration-mode)
         (remove-hook 'window-setup-hook #'restoration--begin)
         (restoration--quietly (restoration--stop)))
        ;; From the init file: after the command line was read.
        (this-command (restoration-start))
        (t (add-hook 'window-setup-hook #'restoration--begin))))

(defun restoration--stop ()
  "Stop saving, and discard the saved state."
  (let ((connection restoration--connection))
    (remove-hook 'kill-emacs-query-functions #'restoration--quit-asked)
    (remove-hook 'kill-emacs-hook #'restoration--end)
    (remove-hook 'post-command-hook #'restoration--command-done)
    (remove-hook 'window-configuration-change-hook #'restoration--windows-changed)
    (remove-hook 'after-delete-frame-functions #'restoration--changed)
    (when restoration--idle-timer
      (cancel-timer restoration--idle-timer)
      (setq restoration--idle-timer nil))
    (when (restoration--open-p)
      (restoration--notify 'goodbye '(:reason "closed"))
      (setq restoration--connection nil)
      (jsonrpc-shutdown connection t))
    (setq restoration--phase 'idle restoration--connection nil restoration--token nil restoration--whole-name nil)))

(provide 'restoration)
;;; restoration.el ends here
