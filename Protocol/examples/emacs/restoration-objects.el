;;; restoration-objects.el --- What the broker has of each object  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; The objects of an Emacs: Editor, which has the frames and the order of their tabs; one below it for each tab; and
;; Editor/Buffers.  What differs from what the broker has is sent, each object by itself, so that a limit costs one tab
;; at most.

;;; Code:

(require 'cl-lib)
(require 'restoration-layout)
(require 'seq)

(cl-defstruct (restoration--object (:constructor restoration--make-object))
  "An object of the broker."
  name
  (known nil :documentation "The text of the state that the broker has.")
  (sent nil :documentation "The text that is under way, or nil.")
  (refused nil :documentation "The text that the broker has refused because of a limit.")
  (trouble nil :documentation "What the broker has said then.")
  (source nil :documentation "The windows of a hidden tab that were looked at, or t for a shown tab."))

(defvar restoration--objects (make-hash-table :test #'equal) "Objects that are registered, by their names.")
(defvar restoration--withheld nil "Names of tabs of which the broker keeps a state that it did not give.")
(defvar restoration--state-bytes 262144 "The broker's limit of a state, `stateBytesMax'.")
(defvar restoration--left-out 0 "Files for which the state of Editor/Buffers has no room.")
(defvar restoration--elements nil "Elements of the state of Editor/Buffers that were sent last.")
(defvar restoration--frames-changed nil "Frames that may have changed since the last look, beside the selected one.")
(defvar restoration--buffers-changed nil "Buffers that may have changed since the last look.")

(defvar restoration--has-changed)
(defvar restoration--whole-name)
(declare-function restoration--request "restoration")
(declare-function restoration--tell-all-changes "restoration")
(declare-function restoration--notify "restoration")

(defun restoration--object-path (name)
  "The path of the object NAME."
  (if (equal name "Editor") ["Editor"] (vector "Editor" name)))

(defun restoration--tab-name-p (name)
  "Whether NAME is that of a tab's object; what is saved may be anything."
  (and (stringp name) (string-match-p "\\`Tab-[0-9]\\{1,9\\}\\'" name)))

(defun restoration--forget-objects ()
  "The broker has no object of this session."
  (clrhash restoration--objects)
  (setq restoration--elements nil))

(defun restoration--resume-objects ()
  "The session goes on after a loss: what was not answered may not have come."
  (maphash (lambda (_name object) (setf (restoration--object-sent object) nil)) restoration--objects)
  (setq restoration--elements nil))

;;;; Looking

(defun restoration--look (all)
  "Look at what may have changed, or at ALL there is: (EDITOR TABS NAMES).
EDITOR is the state of Editor, TABS a list of (NAME STATE SOURCE), and NAMES has
all tabs that are kept."
  (let ((changed (if all t (cons (selected-frame) restoration--frames-changed)))
        (frames (restoration--frames))
        kept looks names)
    (setq restoration--frames-changed nil)
    (restoration--name-tabs frames)
    (dolist (frame frames)
      (let ((tabs (restoration--tabs frame)) is-kept)
        (dolist (tab tabs)
          (let* ((name (restoration--name tab))
                 (object (gethash name restoration--objects))
                 (is-shown (eq (car tab) 'current-tab))
                 (source (or is-shown (alist-get 'ws (cdr tab))))
                 (is-old (and object (not (eq changed t)) (eq source (restoration--object-source object))
                              (not (and is-shown (memq frame changed)))))
                 ;; A tab with nothing to restore takes no other tab along.
                 (state (and (not is-old) (or (restoration--tab-state frame tab)
                                              (and (cdr tabs) (restoration--blank-tab-state frame))))))
            (when state (push (list name state source) looks))
            (when (or is-old state)
              (push name names)
              (setq is-kept t))))
        (when is-kept (push (restoration--frame-state frame) kept))))
    (list `(:frames ,(vconcat (nreverse kept))
            ,@(and restoration--withheld (list :waiting (vconcat restoration--withheld))))
          (nreverse looks)
          names)))

(defun restoration--buffers-state (elements)
  "State of the object Editor/Buffers with ELEMENTS.
The last ones are left out if there is no room."
  (let* ((room (- restoration--state-bytes 100))
         (kept (if (<= (string-bytes (json-serialize (vconcat elements))) room)
                   elements
                 (seq-take-while (lambda (each) (>= (cl-decf room (1+ (string-bytes (json-serialize each)))) 0))
                                 elements))))
    (setq restoration--left-out (- (length elements) (length kept)))
    (when (> restoration--left-out 0)
      (restoration--tell "there is no room for %d of %d visited files; M-x restoration-status says how many are kept"
                         restoration--left-out (length elements)))
    (list :buffers (vconcat kept))))

;;;; Sending

(defun restoration--sync (all &optional send)
  "Send what has changed, looking at what may have, or at ALL there is.
SEND, instead of `restoration--send', sends (OBJECT STATE TEXT)."
  (pcase-let ((`(,editor ,tabs ,names) (restoration--look all))
              (elements (restoration--buffer-elements (or all restoration--buffers-changed)))
              (send (or send #'restoration--send)))
    (setq restoration--buffers-changed nil)
    ;; First: a tab without an entry would never be asked for, an entry without a tab is passed over.
    (restoration--offer "Editor" editor send)
    (pcase-dolist (`(,name ,state ,source) tabs)
      (restoration--offer name state send)
      (setf (restoration--object-source (gethash name restoration--objects)) source))
    (unless (equal elements restoration--elements)
      (setq restoration--elements elements)
      (restoration--offer "Buffers" (restoration--buffers-state elements) send))
    (dolist (name (hash-table-keys restoration--objects))
      (unless (or (member name '("Editor" "Buffers")) (member name names))
        (remhash name restoration--objects)
        (restoration--request 'unregisterObject (list :object (restoration--object-path name)))))))

(defun restoration--offer (name state send)
  "Have SEND send STATE of the object NAME, unless the broker has it."
  (let ((object (or (gethash name restoration--objects) (restoration--register-tab name)))
        (text (json-serialize state)))
    (cond ((equal text (or (restoration--object-sent object) (restoration--object-known object)))
           (setf (restoration--object-trouble object) nil))
          ((not (equal text (restoration--object-refused object)))
           (funcall send object state text)))))

(defun restoration--register-tab (name)
  "Register the object of the new tab NAME."
  (restoration--request 'registerObjectForStateRestoration
                        (list :restorationIdentifier name :restorationParent ["Editor"] :kind "viewController"
                              :objectClass "EmacsTab" :fresh t)
                        #'ignore
                        ;; The state that follows is refused as well, and says so.
                        #'ignore)
  (puthash name (restoration--make-object :name name) restoration--objects))

(defun restoration--send (object state text)
  "Send STATE of OBJECT, whose text is TEXT."
  (setf (restoration--object-sent object) text)
  (restoration--request
   'encodeRestorableState
   (list :object (restoration--object-path (restoration--object-name object)) :state state)
   (lambda (_)
     (setf (restoration--object-known object) text
           (restoration--object-refused object) nil
           (restoration--object-trouble object) nil)
     (restoration--arrived object text))
   (lambda (failure)
     (restoration--arrived object text)
     (restoration--refuse object text failure))))

(defun restoration--arrived (object text)
  "The broker has answered to TEXT of OBJECT."
  (when (equal text (restoration--object-sent object)) (setf (restoration--object-sent object) nil)))

(defun restoration--refuse (object text failure)
  "Remember that TEXT of OBJECT was refused with FAILURE."
  (pcase (plist-get (plist-get failure :data) :kind)
    ;; The next broker takes it.
    ("shuttingDown" (run-with-timer 1 nil #'restoration--tell-all-changes))
    (kind
     (when (equal kind "limitExceeded") (setf (restoration--object-refused object) text))
     (setf (restoration--object-trouble object) (plist-get failure :message))
     (restoration--tell "%s is not kept as it is: %s" (restoration--object-name object) (plist-get failure :message))))
  ;; With the next change it is offered again, unless it would be refused again.
  (setq restoration--elements nil
        restoration--has-changed t))

(defun restoration--send-last (object state _text)
  "Send STATE of OBJECT without waiting for an answer."
  (restoration--notify 'encodeRestorableState
                       (list :object (restoration--object-path (restoration--object-name object)) :state state)))

(defun restoration--troubles ()
  "What is not kept, as sentences for people; nil if everything is."
  (let (troubles)
    (maphash (lambda (name object)
               (when (restoration--object-trouble object)
                 (push (format "%s is not: %s." name (restoration--object-trouble object)) troubles)))
             restoration--objects)
    (when (> restoration--left-out 0)
      (push (format "%d visited files are not: there is no room." restoration--left-out) troubles))
    troubles))

;;;; Fetching

(defun restoration--fetch (names done)
  "Register the tabs NAMES, and call DONE with a table of their windows by name."
  (let ((windows (make-hash-table :test #'equal))
        (left (length names)))
    (when (zerop left) (funcall done windows))
    (dolist (name names)
      (let ((path (restoration--object-path name))
            (object (puthash name (restoration--make-object :name name) restoration--objects)))
        (restoration--request 'registerObjectForStateRestoration
                              (list :restorationIdentifier name :restorationParent ["Editor"] :kind "viewController"
                                    :objectClass "EmacsTab"))
        (restoration--request
         'decodeRestorableState (list :object path)
         (lambda (result)
           (restoration--tell-withheld result)
           (let ((state (plist-get result :state)))
             (if (and (equal (plist-get result :status) "available") (plist-get state :windows))
                 (progn
                   (setf (restoration--object-known object) (restoration--text state))
                   (puthash name (plist-get state :windows) windows))
               (restoration--pass-over name (plist-get result :status))))
           (when (zerop (cl-decf left)) (funcall done windows))))))))

(defun restoration--tell-withheld (result)
  "Say so if the broker withholds a state, as RESULT of its decode tells."
  (when (equal (plist-get result :status) "quarantined")
    (restoration--tell "what was saved is withheld after crashes; to release it: restorationctl quarantine release %s"
                       restoration--whole-name)))

(defun restoration--pass-over (name status)
  "Pass the tab NAME over, which has no state now, for a reason in STATUS.
If the broker keeps one, the next Emacs asks again."
  (remhash name restoration--objects)
  (let ((is-kept (not (member status '("none" "available")))))
    (when is-kept (push name restoration--withheld))
    (restoration--request 'unregisterObject
                          `(:object ,(restoration--object-path name) ,@(and is-kept '(:keepState t))))))

(defun restoration--tabs-of (editor)
  "The names of the tabs of EDITOR, a state of Editor.
There are none if it has the windows itself."
  (seq-uniq (seq-filter #'restoration--tab-name-p
                        (append (seq-mapcat (lambda (frame) (append (plist-get frame :tabs) nil))
                                            (plist-get editor :frames))
                                (plist-get editor :waiting) nil))))

(defun restoration--frames-of (editor windows)
  "The frames of EDITOR, a state of Editor, for `restoration--restore'.
WINDOWS has the windows of its tabs by name.  States that were saved by an
earlier version have them themselves."
  (let ((frames
         (cl-loop for frame across (or (plist-get editor :frames) [])
                  for before = (append (plist-get frame :before) nil)
                  for tabs = (if (plist-get frame :windows)
                                 (mapcar (lambda (each) (cons nil each))
                                         (append before (list (plist-get frame :windows)) (plist-get frame :after) nil))
                               (restoration--named-windows (plist-get frame :tabs) windows))
                  for shown = (if before
                                  (length before)
                                (or (cl-position (plist-get frame :tab) tabs :key #'car :test #'equal) 0))
                  when tabs collect `(,frame ,shown ,@tabs)))
        (waiting (restoration--named-windows (plist-get editor :waiting) windows)))
    (when frames (nconc (car (last frames)) waiting))
    frames))

(defun restoration--named-windows (names windows)
  "For each of NAMES that is in WINDOWS, (NAME . ITS-WINDOWS)."
  (cl-loop for name across (or names [])
           for node = (gethash name windows)
           when node collect (cons name node)))

(provide 'restoration-objects)
;;; restoration-objects.el ends here
