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

(defconst restoration--objects '((editor . ["Editor"]) (buffers . ["Editor" "Buffers"])))
(defconst restoration--none (make-hash-table) "An empty JSON object.")
(defconst restoration--quiet 0.4 "Seconds from a change to the call that tells of it.")
(defconst restoration--retry-first 0.25)
(defconst restoration--retry-last 10.0)
(defconst restoration--goodbye 0.3 "Seconds that the end may take.")

(defvar restoration--phase 'idle "One of idle, connecting, restoring, kept, over.")
(defvar restoration--retry restoration--retry-first)
(defvar restoration--connection nil)
(defvar restoration--token nil)
(defvar restoration--whole-name nil "The application with the instance that the broker gave.")
(defvar restoration--instance nil "An instance of our own, where an earlier one is not wanted.")
(defvar restoration--known nil "Alist from object to the text of the state that the broker has.")
(defvar restoration--asked nil "Objects of which the broker knows that there is a newer state.")
(defvar restoration--timer nil)
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

(defun restoration--request (method params &optional success)
  "Call METHOD with PARAMS, then SUCCESS with the result."
  (let ((connection restoration--connection))
    (jsonrpc-async-request connection method params
                           :timeout nil
                           :success-fn (lambda (result)
                                         (when (and success (eq connection restoration--connection))
                                           (restoration--quietly (funcall success result))))
                           :error-fn (lambda (failure)
                                       (when (and (eq connection restoration--connection) (restoration--open-p))
                                         (restoration--quietly (restoration--failed failure)))))))

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
  "Something may have changed.  Checked once within `restoration--quiet' seconds."
  (unless (or restoration--timer (not (eq restoration--phase 'kept)))
    (setq restoration--timer (run-with-timer restoration--quiet nil #'restoration--tell-changes))))

(defun restoration--tell-changes ()
  "Tell the broker what has changed."
  (setq restoration--timer nil)
  (when (and (eq restoration--phase 'kept) (restoration--open-p))
    (restoration--quietly
      (pcase-dolist (`(,object . ,path) restoration--objects)
        (unless (or (memq object restoration--asked)
                    (equal (alist-get object restoration--known) (json-serialize (restoration--state object))))
          (push object restoration--asked)
          (jsonrpc-notify restoration--connection 'invalidateRestorableState (list :object path)))))))

(defun restoration--answer (_connection method params)
  "Answer the broker's call of METHOD with PARAMS."
  (unless (eq method 'encodeRestorableStateWithCoder) (jsonrpc-error "not served: %s" method))
  (list :states
        (vconcat
         (mapcar (lambda (each)
                   (let* ((object (car (rassoc (plist-get each :path) restoration--objects)))
                          (state (restoration--state object)))
                     (setq restoration--asked (delq object restoration--asked))
                     (setf (alist-get object restoration--known) (json-serialize state))
                     (list :object (plist-get each :object) :state state)))
                 (plist-get params :objects)))))

;;;; The beginning

(defun restoration--initialize ()
  "Open a session, or resume it."
  (unless (eq restoration--phase 'kept) (setq restoration--phase 'connecting))
  (restoration--request
   'initialize
   `(:application ,(or restoration--whole-name restoration-application)
     ,@(unless restoration--whole-name (list :instance (or restoration--instance "auto")))
     ,@(and restoration--token (list :session restoration--token))
     :process "emacs" :bundleVersion ,emacs-version :serves ["encodeRestorableStateWithCoder"])
   (lambda (result)
     (let ((resumed (equal restoration--token (plist-get result :session))))
       (setq restoration--token (plist-get result :session)
             restoration--whole-name (plist-get result :application)
             restoration--retry restoration--retry-first
             restoration--known nil
             restoration--asked nil)
       (if (and resumed (eq restoration--phase 'kept))
           (restoration--changed)
         (restoration--register))))))

(defun restoration--register ()
  "Register the objects and ask for their states."
  (restoration--request 'registerObjectForStateRestoration
                        '(:restorationIdentifier "Editor" :kind "viewController" :objectClass "EmacsEditor"))
  (restoration--request 'registerObjectForStateRestoration
                        '(:restorationIdentifier "Buffers" :restorationParent ["Editor"] :objectClass "EmacsBuffers"))
  (let (editor)
    (restoration--request 'decodeRestorableState '(:object ["Editor"]) (lambda (result) (setq editor result)))
    (restoration--request
     'decodeRestorableState '(:object ["Editor" "Buffers"])
     (lambda (buffers)
       (if (and editor (eq restoration--phase 'connecting)
                (equal (plist-get editor :status) "available") (equal (plist-get buffers :status) "available"))
           (progn
             (setq restoration--phase 'restoring)
             ;; Not while the connection is being read.
             (run-with-timer 0 nil #'restoration--when-quiet restoration--connection
                             (plist-get editor :state) (plist-get buffers :state)))
         (restoration--request 'completeStateRestoration restoration--none)
         (restoration--kept))))))

(defun restoration--own-instance ()
  "A name for a new instance."
  (format-time-string (format "%%Y%%m%%dT%%H%%M%%S-%d" (emacs-pid)) nil t))

(defun restoration--leave ()
  "Leave this instance to the other Emacs, and continue in an instance of our own."
  (setq restoration--token nil
        restoration--whole-name nil
        restoration--instance (restoration--own-instance))
  (restoration--request 'goodbye '(:reason "restart") (lambda (_) (restoration--initialize))))

(defun restoration--when-quiet (connection editor buffers)
  "Restore EDITOR and BUFFERS, which came over CONNECTION, unless the user is busy."
  (when (and (eq connection restoration--connection) (restoration--open-p))
    (cond ((not (restoration--pristine-p)) (restoration--quietly (restoration--leave)))
          ((or (active-minibuffer-window) (> (recursion-depth) 0) (input-pending-p))
           (run-with-timer 0.05 nil #'restoration--when-quiet connection editor buffers))
          (t (restoration--quietly (restoration--restore editor buffers))
             (restoration--quietly
               (restoration--request 'completeStateRestoration restoration--none)
               (restoration--quietly (run-hooks 'restoration-restored-hook))
               (restoration--kept))))))

(defun restoration--kept ()
  "From now on the state is saved."
  (setq restoration--phase 'kept)
  (add-hook 'post-command-hook #'restoration--changed)
  (add-hook 'window-configuration-change-hook #'restoration--changed)
  (add-hook 'after-delete-frame-functions #'restoration--changed)
  (restoration--changed)
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

(defun restoration--quits-p ()
  "Whether Emacs ends by its user's own word, not by a signal.
Emacs is idle while it waits for input, as in each of its questions, and not
while the command that quits it runs."
  (and (not (current-idle-time))
       (or restoration--quitting (eq this-command 'kill-emacs))))

(defun restoration--end ()
  "Say goodbye; a signal does not mean that the user quits."
  (let* ((phase restoration--phase)
         (reason (cond ((not (eq phase 'kept)) "restart")
                       ((restoration--quits-p) (symbol-name restoration-on-quit))
                       (t "logout"))))
    (setq restoration--phase 'over)
    (when (and restoration--token (restoration--open-p))
      (ignore-errors
        (unless (or (equal reason "userQuit") (not (eq phase 'kept)))
          (pcase-dolist (`(,object . ,path) restoration--objects)
            (jsonrpc-notify restoration--connection 'encodeRestorableState
                            (list :object path :state (restoration--state object)))))
        (jsonrpc-request restoration--connection 'goodbye (list :reason reason) :timeout restoration--goodbye)))))

;;;; Commands

(defun restoration--begin ()
  "Enable the mode unless files were named."
  (when (and (eq restoration--phase 'idle) (restoration--pristine-p)) (restoration-start)))

;;;###autoload
(defun restoration-start ()
  "Save frames, windows and files from now on; restore earlier ones if nothing is open."
  (interactive)
  (when (and (eq restoration--phase 'idle) (not noninteractive) (not (daemonp)))
    (setq restoration--phase 'connecting)
    (unless (restoration--pristine-p) (setq restoration--instance (restoration--own-instance)))
    (add-hook 'kill-emacs-query-functions #'restoration--quit-asked)
    (add-hook 'kill-emacs-hook #'restoration--end)
    (restoration--connect)))

(defun restoration-status ()
  "Say whether frames, windows and files are saved."
  (interactive)
  (message "%s" (pcase restoration--phase
                  ('idle "Not kept: not started empty on a screen; M-x restoration-start begins.")
                  ('over "Not kept: see *Messages*.")
                  ((guard (and restoration--whole-name (restoration--open-p)))
                   (format "Kept as %s." restoration--whole-name))
                  (_ (format "Not kept: no broker at %s" (restoration--path))))))

;;;###autoload
(define-minor-mode restoration-mode
  "Keep frames, windows and files with restorationd, and bring them back after a crash."
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
    (remove-hook 'post-command-hook #'restoration--changed)
    (remove-hook 'window-configuration-change-hook #'restoration--changed)
    (remove-hook 'after-delete-frame-functions #'restoration--changed)
    (when (restoration--open-p)
      (jsonrpc-notify connection 'goodbye '(:reason "closed"))
      (setq restoration--connection nil)
      (jsonrpc-shutdown connection t))
    (setq restoration--phase 'idle restoration--connection nil restoration--token nil restoration--whole-name nil)))

(provide 'restoration)
;;; restoration.el ends here
