;;; restoration-layout.el --- Windows and files as plain data  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; What restoration.el saves, and how it is restored.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'subr-x)
(require 'tab-bar)

(defconst restoration--state-bytes 250000 "The broker's limit of a state (stateBytesMax), less a margin.")
(defconst restoration--variables
  '((case-fold-search nil t) (display-line-numbers nil t relative visual) (fill-column . 9999)
    (indent-tabs-mode nil t) (tab-width . 99) (truncate-lines nil t) (word-wrap nil t))
  "Local variables that are kept: all values, or the greatest number.
None of them is evaluated or names code, and none may be added that is or does.")

(defvar restoration--queue nil "Files that are still to be visited, as in the state.")
(defvar restoration--told nil)

(defun restoration--tell (format &rest arguments)
  "Show one message, FORMAT with ARGUMENTS, and no other ever."
  (unless restoration--told
    (setq restoration--told t)
    (message "restoration: %s" (apply #'format-message format arguments))))

(defmacro restoration--quietly (&rest body)
  "Run BODY; an error becomes a message at most."
  (declare (indent 0) (debug t))
  `(condition-case fault (progn ,@body)
     (error (restoration--tell "%s" (error-message-string fault)) nil)))

;;;; The layout as plain data

(defun restoration--file (buffer)
  "The local file or directory that BUFFER shows, or nil."
  (with-current-buffer buffer
    (let ((file (or buffer-file-name (and (derived-mode-p 'dired-mode) (expand-file-name default-directory)))))
      (and file
           (not (file-remote-p file))
           ;; A name that is not UTF-8 cannot be written as JSON.
           (ignore-errors (json-serialize (vector file)))
           file))))

(defun restoration--view (buffer)
  "What is kept of BUFFER wherever it is shown: its narrowing, and local variables as numbers."
  (with-current-buffer buffer
    (let ((variables (cl-loop for (name . values) in restoration--variables
                              for value = (and (local-variable-p name) (symbol-value name))
                              for number = (if (listp values) (cl-position value values) value)
                              when (and (local-variable-p name) (restoration--allows-p values number))
                              append (list (intern (format ":%s" name)) number))))
      `(,@(and (buffer-narrowed-p) (list :narrowed (vector (point-min) (point-max))))
        ,@(and variables (list :variables variables))))))

(defun restoration--allows-p (values number)
  "Whether NUMBER stands for one of VALUES: a list, or the greatest number."
  (and (integerp number) (<= 0 number (if (listp values) (1- (length values)) values))))

(defun restoration--leaf (buffer point start width height selected)
  "A window as data, or nil if it could not be restored."
  (when-let ((file (and (buffer-live-p buffer)
                        (or (restoration--file buffer)
                            (car (member (buffer-name buffer) '("*scratch*" "*Messages*")))))))
    `(,(if (string-prefix-p "*" file) :buffer :file) ,file :point ,point :start ,start :width ,width :height ,height
      ,@(and (eq selected t) '(:selected t))
      ,@(restoration--view buffer))))

(defun restoration--split (split parts)
  "The node of PARTS, of which some may be nil, in a row or column, as SPLIT says."
  (setq parts (remq nil parts))
  (if (cdr parts) (list :split split :parts (vconcat parts)) (car parts)))

(defun restoration--node (window)
  "WINDOW with all that is in it as data, or nil."
  (if (window-live-p window)
      (restoration--leaf (window-buffer window) (window-point window) (window-start window)
                         (window-total-width window) (window-total-height window)
                         (eq window (frame-selected-window (window-frame window))))
    (restoration--split (if (window-left-child window) "row" "column")
                        (cl-loop for child = (window-child window) then (window-next-sibling child)
                                 while child collect (restoration--node child)))))

(defun restoration--hidden-node (state)
  "STATE, windows of a tab that is not shown as `window-state-get' has them, as data, or nil."
  (let-alist (seq-filter #'consp (cdr state))
    (if (eq (car state) 'leaf)
        (let ((place (cdr .buffer)))
          (restoration--leaf (get-buffer (car .buffer)) (alist-get 'point place) (alist-get 'start place)
                             .total-width .total-height (alist-get 'selected place)))
      (restoration--split (if (eq (car state) 'hc) "row" "column")
                          (cl-loop for part in (cdr state)
                                   when (memq (car-safe part) '(leaf hc vc))
                                   collect (restoration--hidden-node part))))))

(defun restoration--tabs (frame)
  "Windows of the other tabs of FRAME: those before and after the one that is shown."
  (let* ((tabs (frame-parameter frame 'tabs))
         (shown (cl-position 'current-tab tabs :key #'car))
         (nodes (lambda (tabs)
                  (vconcat (remq nil (mapcar (lambda (tab) (restoration--hidden-node (cdr (alist-get 'ws (cdr tab)))))
                                             tabs))))))
    (when (and shown (cdr tabs))
      (list :before (funcall nodes (seq-take tabs shown)) :after (funcall nodes (seq-drop tabs (1+ shown)))))))

(defun restoration--frames ()
  "Frames that have windows of their own, the oldest first."
  (nreverse (filtered-frame-list
             (lambda (frame)
               (not (or (frame-parent frame)
                        (eq (frame-parameter frame 'minibuffer) 'only)
                        (frame-parameter frame 'tooltip)))))))

(defun restoration--editor-state ()
  "State of the object Editor."
  (let ((frames (cl-loop for frame in (restoration--frames)
                         for (width . height) = (cons (frame-width frame) (frame-height frame))
                         for tabs = (restoration--tabs frame)
                         ;; A tab with nothing to restore, such as a shell, takes no other tab along.
                         for windows = (or (restoration--node (frame-root-window frame))
                                           (and tabs (restoration--leaf (get-buffer-create "*scratch*") 1 1
                                                                        width height t)))
                         when windows
                         collect `(:windows ,windows :columns ,width :lines ,height ,@tabs
                                   ,@(and (eq frame (selected-frame)) '(:selected t))))))
    (list :frames (vconcat frames))))

(defun restoration--buffers-state ()
  "State of the object Editor/Buffers: files, the one used last first."
  (let ((bytes 0)
        (files (cl-loop for buffer in (buffer-list)
                        for file = (and (not (buffer-base-buffer buffer)) (restoration--file buffer))
                        when file
                        collect `(:file ,file :point ,(restoration--point buffer) ,@(restoration--view buffer)
                                  ,@(and (buffer-modified-p buffer) (buffer-file-name buffer) '(:modified t))))))
    (list :buffers
          (vconcat (seq-take-while
                    (lambda (each)
                      ;; Room for the longest escaped form of a name, and its punctuation.
                      (<= (cl-incf bytes (+ 256 (* 6 (string-bytes (plist-get each :file))))) restoration--state-bytes))
                    (append files restoration--queue))))))

(defun restoration--point (buffer)
  "Point of BUFFER, in a window where one shows it."
  (let ((window (get-buffer-window buffer t)))
    (if window (window-point window) (with-current-buffer buffer (point)))))

(defun restoration--state (object)
  "State of OBJECT, which is editor or buffers."
  (if (eq object 'editor) (restoration--editor-state) (restoration--buffers-state)))

;;;; Restoring

(defun restoration--pristine-p ()
  "Nothing has been opened yet, so restoring disturbs nothing."
  (and (null (cdr (restoration--frames)))
       (cl-notany (lambda (window) (restoration--file (window-buffer window))) (window-list nil 'never))))

(defun restoration--visit (each)
  "A buffer for EACH, an element of the state; never asks."
  (let* ((name (plist-get each :file))
         ;; Whole, without handlers of special names: "/a/../ssh:b:" is a remote one after it.
         (file (and (stringp name) (let (file-name-handler-alist) (expand-file-name name "/"))))
         (large-file-warning-threshold nil)
         (enable-local-variables (and enable-local-variables :safe))
         (vc-follow-symlinks nil)
         (inhibit-message t)
         ;; Nothing that is saved is trusted: a remote name would run programs, and a pipe would be waited for.
         (local (and file (string-prefix-p "/" name) (not (file-remote-p file))
                     (or (not (file-exists-p file)) (file-regular-p file) (file-directory-p file))))
         (known (and local (get-file-buffer file)))
         (buffer (cond (name (or known (and local (ignore-errors (find-file-noselect file t)))))
                       (t (get-buffer (plist-get each :buffer))))))
    (when (and buffer (not known))
      (with-current-buffer buffer (restoration--apply each)))
    (or buffer (get-buffer-create "*scratch*"))))

(defun restoration--apply (each)
  "Narrow the current buffer, set its variables and move point as EACH, an element of the state, says."
  (cl-loop for (name . values) in restoration--variables
           for number = (plist-get (plist-get each :variables) (intern (format ":%s" name)))
           when (restoration--allows-p values number)
           do (set (make-local-variable name) (if (listp values) (nth number values) number)))
  (pcase (plist-get each :narrowed)
    ((and `[,first ,last] (guard (and (natnump first) (natnump last) (<= 1 first last (1+ (buffer-size))))))
     (narrow-to-region first last)))
  (goto-char (or (plist-get each :point) (point-min))))

(defun restoration--build (node window)
  "Split WINDOW into the parts of NODE; a list of (WINDOW . LEAF)."
  (let ((windows (list window)))
    (dotimes (_ (max 0 (1- (length (plist-get node :parts)))))
      ;; If there is no room for all windows, the first ones are shown.
      (when-let ((next (ignore-errors
                         (split-window (car windows) nil (if (equal (plist-get node :split) "row") 'right 'below)))))
        (push next windows)))
    (if (plist-get node :split)
        (apply #'append (cl-mapcar #'restoration--build (plist-get node :parts) (nreverse windows)))
      (list (cons window node)))))

(defun restoration--resize (leaves columns lines)
  "Give each of LEAVES the share of its frame that it had of COLUMNS and LINES."
  (pcase-dolist (`(,window . ,leaf) leaves)
    (let ((width (round (* (plist-get leaf :width) (frame-width)) columns))
          (height (round (* (plist-get leaf :height) (frame-height)) lines)))
      (ignore-errors (window-resize window (- width (window-total-width window)) t))
      (ignore-errors (window-resize window (- height (window-total-height window)))))))

(defun restoration--fill-tabs (state)
  "Make the tabs of STATE with their windows in the selected frame."
  (let* ((before (append (plist-get state :before) nil))
         (tabs `(,@before ,(plist-get state :windows) ,@(append (plist-get state :after) nil)))
         (tab-bar-new-tab-choice t)
         (tab-bar-new-tab-to 'rightmost))
    (cl-loop for windows in tabs
             for isFirst = t then nil
             unless isFirst do (tab-bar-new-tab)
             do (restoration--fill (plist-put (copy-sequence state) :windows windows)))
    (when (cdr tabs) (tab-bar-select-tab (1+ (length before))))))

(defun restoration--fill (state)
  "Make the windows of STATE in the selected frame."
  (delete-other-windows)
  (let* ((window-combination-resize t)
         (window-min-height 1)
         (window-min-width 2)
         (leaves (restoration--build (plist-get state :windows) (selected-window))))
    ;; Twice, because each window takes space from its neighbours.
    (dotimes (_ 2) (restoration--resize leaves (plist-get state :columns) (plist-get state :lines)))
    (pcase-dolist (`(,window . ,leaf) leaves)
      (set-window-buffer window (restoration--visit leaf))
      (set-window-start window (plist-get leaf :start) t)
      (set-window-point window (plist-get leaf :point))
      (when (plist-get leaf :selected) (select-window window)))))

(defun restoration--restore (editor buffers)
  "Put the frames of EDITOR back at once, and the files of BUFFERS when Emacs has nothing else to do."
  (let ((first (selected-frame)) selected)
    (setq restoration--queue (append (plist-get buffers :buffers) nil))
    (cl-loop for state across (plist-get editor :frames)
             for frame = first then (make-frame)
             do (with-selected-frame frame (restoration--fill-tabs state))
             when (plist-get state :selected) do (setq selected frame))
    (when selected (select-frame-set-input-focus selected))
    (restoration--visit-next)))

(defun restoration--visit-next ()
  "Visit files of the queue until the user types."
  (restoration--quietly
    (while (and restoration--queue (not (input-pending-p)))
      (let ((each (car restoration--queue)))
        (save-window-excursion
          (bury-buffer (restoration--visit each)))
        (pop restoration--queue))))
  (when restoration--queue (run-with-idle-timer 0.2 nil #'restoration--visit-next)))

(provide 'restoration-layout)
;;; restoration-layout.el ends here
