;;; emacs_client.el --- Emacs's jsonrpc.el  -*- lexical-binding: t -*-
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:
;; The library below eglot: Content-Length frames, both directions.  Run as emacs -Q --batch -l FILE.

;;; Code:
(require 'jsonrpc)

(defconst client-path ["Notes"])

(defconst client-state
  `(:text "Grüße, 世界 🗒 \"\\\u2028"
    :nested ,#s(hash-table test equal data ("list" [1 [t nil] (:a (:b []))] "" #s(hash-table)))
    :ratio 0.1
    :big 9007199254740993))

(defvar client-saved nil "Number of the generation that was saved.")

(defun client-say (format &rest arguments)
  "Print a line, at once: FORMAT with ARGUMENTS."
  (send-string-to-terminal (concat (apply #'format format arguments) "\n")))

(defun client-expect (step actual expected)
  "Report STEP, or end because ACTUAL is not EXPECTED."
  (unless (equal actual expected)
    (client-say "not ok %s: %S instead of %S" step actual expected)
    (kill-emacs 1))
  (client-say "ok %s" step))

(defun client-read-back (object)
  "OBJECT as the library returns it from the broker."
  (json-parse-string (json-serialize object :null-object nil :false-object :json-false)
                     :object-type 'plist :null-object nil :false-object :json-false))

(defun client-expect-state (step decoded state)
  "Report STEP, or end because DECODED has not STATE."
  (client-expect step
                 (list (plist-get decoded :status) (plist-get decoded :state))
                 (list "available" (client-read-back state))))

(defun client-request (_connection method params)
  "Answer the broker's call of METHOD with PARAMS."
  (let ((object (aref (plist-get params :objects) 0)))
    (client-expect 'encodeRequest (list method (plist-get object :path))
                   (list 'encodeRestorableStateWithCoder client-path))
    `(:states [(:object ,(plist-get object :object) :state (,@client-state :asked t))])))

(defun client-notification (_connection method params)
  "Take the notification METHOD with PARAMS."
  (when (eq method 'applicationStateSaved)
    (setq client-saved (plist-get params :generation))))

(let* ((socket (make-network-process :name "restorationd" :family 'local :coding 'utf-8-emacs-unix
                                     :service (getenv "RESTORATIOND_SOCKET")))
       (broker (jsonrpc-process-connection :name "restorationd" :process socket
                                           :request-dispatcher #'client-request
                                           :notification-dispatcher #'client-notification))
       (opened (jsonrpc-request broker :initialize
                                `(:application ,(getenv "RESTORATION_APPLICATION") :process "emacs"
                                  :serves ["encodeRestorableStateWithCoder" "applicationStateSaved"]))))
  (client-expect 'initialize (plist-get opened :protocolVersion) 1)
  (let* ((parameters '(:restorationIdentifier "Notes" :objectClass "Notes"))
         (registered (jsonrpc-request broker :registerObjectForStateRestoration parameters))
         (object (plist-get registered :object)))
    (client-expect 'register (plist-get registered :path) client-path)
    (jsonrpc-notify broker :encodeRestorableState `(:object ,client-path :state (:draft t)))
    (client-expect-state 'notify (jsonrpc-request broker :decodeRestorableState `(:object ,client-path)) '(:draft t))
    (let ((stored (jsonrpc-request broker :encodeRestorableState `(:object ,object :state ,client-state))))
      (client-expect 'encode (plist-get stored :durability) "disk")))
  (client-expect-state 'decode (jsonrpc-request broker :decodeRestorableState (vector client-path)) client-state)
  (condition-case failure
      (jsonrpc-request broker :decodeRestorableState '(:object ["Missing"]))
    (jsonrpc-error
     (let ((members (cddr failure)))
       (client-expect "error -32002 unknownObject"
                      (list (alist-get 'jsonrpc-error-code members)
                            (plist-get (alist-get 'jsonrpc-error-data members) :kind))
                      '(-32002 "unknownObject")))))
  (client-say "waiting")
  (while (and (null client-saved) (jsonrpc-running-p broker))
    (accept-process-output socket 1))
  (client-expect 'saved client-saved 1)
  (client-expect 'goodbye (jsonrpc-request broker :goodbye '(:reason "restart")) nil)
  (jsonrpc-shutdown broker))

(provide 'emacs_client)
;;; emacs_client.el ends here
