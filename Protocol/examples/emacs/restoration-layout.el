;;; restoration-layout.el --- Windows and files as plain data  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; What restoration.el saves, and how it is restored.

;;; Code:

(require 'cl-lib)
(require 'restoration-waiting)
(require 'seq)
(require 'subr-x)
(require 'tab-bar)

(defconst restoration--variables
  '((case-fold-search nil t) (display-line-numbers nil t relative visual) (fill-column . 9999)
    (indent-tabs-mode nil t) (tab-width . 99) (truncate-lines nil t) (word-wrap nil t))
  "Local variables that are kept: all values, or the greatest number.
None of them is evaluated or names code, and none may be added that is or does.")

(defvar restoration--queue nil "Files that are still to be visited, as in the state.")
(defvar restoration--shown-first nil "Buffers in windows when Emacs had started: what the settings open.")
(defvar restoration--frames-first nil "The frames that there were then.")
(defvar restoration--last-tab 0 "The number in the last name that a tab was given.")
(defvar restoration--hidden-buffers (make-hash-table :test #'eq :weakness 'key)
  "For the windows of each hidden tab a table of their buffers by name.
They name them as they were called when the tab was left.")
(defvar restoration--auto-saved nil "Restored buffers whose auto-save files were newer than their files.")
(defvar restoration--told nil)
(defvar-local restoration--element nil "The buffer as an element of the state, as it was seen last.")
(put 'restoration--element 'permanent-local t)

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
  "The file or directory of BUFFER, or that it stands for, or nil."
  (with-current-buffer buffer
    (let ((file (or buffer-file-name
                    (plist-get restoration--waiting :file)
                    (and (derived-mode-p 'dired-mode) (expand-file-name default-directory)))))
      ;; A name that is not UTF-8 cannot be written as JSON.
      (and file (ignore-errors (json-serialize (vector file))) file))))

(defun restoration--view (buffer)
  "What is kept of BUFFER anywhere: narrowing, and local variables as numbers."
  (with-current-buffer buffer
    (if restoration--waiting
        (cl-loop for name in '(:narrowed :variables)
                 for value = (plist-get restoration--waiting name)
                 when (and value (restoration--text value)) append (list name value))
      (let ((variables (cl-loop for (name . values) in restoration--variables
                                for value = (and (local-variable-p name) (symbol-value name))
                                for number = (if (listp values) (cl-position value values) value)
                                when (and (local-variable-p name) (restoration--allows-p values number))
                                append (list (intern (format ":%s" name)) number))))
        `(,@(and (buffer-narrowed-p) (list :narrowed (vector (point-min) (point-max))))
          ,@(and variables (list :variables variables)))))))

(defun restoration--text (value)
  "VALUE, a part of what was saved, as JSON, or nil if it cannot be saved again."
  (ignore-errors (json-serialize value)))

(defun restoration--place (name)
  "Where the window of the file was that this buffer stands for.
NAME is `:point' or `:start'."
  (let ((place (plist-get restoration--waiting name)))
    (if (natnump place) place 1)))

(defun restoration--allows-p (values number)
  "Whether NUMBER stands for one of VALUES: a list, or the greatest number."
  (and (integerp number) (<= 0 number (if (listp values) (1- (length values)) values))))

(defun restoration--leaf (buffer point start width height selected)
  "A window as data, or nil if it could not be restored.
It has BUFFER, POINT, START, WIDTH and HEIGHT, and may be SELECTED."
  (when-let ((file (and (buffer-live-p buffer)
                        (or (restoration--file buffer)
                            (car (member (buffer-name buffer) '("*scratch*" "*Messages*")))))))
    (with-current-buffer buffer
      `(,(if (string-prefix-p "*" file) :buffer :file) ,file
        :point ,(if restoration--waiting (restoration--place :point) point)
        :start ,(if restoration--waiting (restoration--place :start) start)
        :width ,width :height ,height
        ,@(and (eq selected t) '(:selected t))
        ,@(restoration--view buffer)))))

(defun restoration--selected-window (frame)
  "The selected window of FRAME, or the one from which Emacs asks something."
  (let ((window (frame-selected-window frame)))
    (if (window-minibuffer-p window) (or (minibuffer-selected-window) window) window)))

(defun restoration--split (split parts)
  "The node of PARTS, of which some may be nil; SPLIT is \"row\" or \"column\"."
  (setq parts (remq nil parts))
  (if (cdr parts) (list :split split :parts (vconcat parts)) (car parts)))

(defun restoration--node (window)
  "WINDOW with all that is in it as data, or nil."
  (if (window-live-p window)
      (restoration--leaf (window-buffer window) (window-point window) (window-start window)
                         (window-total-width window) (window-total-height window)
                         (eq window (restoration--selected-window (window-frame window))))
    (restoration--split (if (window-left-child window) "row" "column")
                        (cl-loop for child = (window-child window) then (window-next-sibling child)
                                 while child collect (restoration--node child)))))

(defun restoration--hidden-node (state buffers)
  "STATE, windows of a hidden tab by `window-state-get', as data, or nil.
BUFFERS has its buffers by name."
  (let-alist (seq-filter #'consp (cdr state))
    (if (eq (car state) 'leaf)
        (let ((place (cdr .buffer)))
          (unless (alist-get 'window-side .parameters)
            (restoration--leaf (gethash (car .buffer) buffers) (alist-get 'point place) (alist-get 'start place)
                               .total-width .total-height (alist-get 'selected place))))
      (restoration--split (if (eq (car state) 'hc) "row" "column")
                          (cl-loop for part in (cdr state)
                                   when (memq (car-safe part) '(leaf hc vc))
                                   collect (restoration--hidden-node part buffers))))))

(defun restoration--buffers-of (windows)
  "A table of the buffers of WINDOWS, those of a hidden tab, by name."
  (or (gethash windows restoration--hidden-buffers)
      (let ((buffers (make-hash-table :test #'equal)))
        (cl-labels ((add (state)
                      (if (eq (car state) 'leaf)
                          (let ((name (cadr (assq 'buffer (cdr state)))))
                            (puthash name (get-buffer name) buffers))
                        (dolist (part (cdr state)) (when (memq (car-safe part) '(leaf hc vc)) (add part))))))
          (add (cdr windows)))
        (puthash windows buffers restoration--hidden-buffers))))

(defun restoration--note-hidden-tabs (frame)
  "Remember the buffers of tabs of FRAME that were left, before they are renamed."
  (dolist (tab (frame-parameter frame 'tabs))
    (when-let ((hidden (alist-get 'ws (cdr tab)))) (restoration--buffers-of hidden))))

(defun restoration--frames ()
  "Frames that have windows of their own, the oldest first."
  (nreverse (filtered-frame-list
             (lambda (frame)
               (not (or (frame-parent frame)
                        (eq (frame-parameter frame 'minibuffer) 'only)
                        (frame-parameter frame 'tooltip)))))))

(defun restoration--tabs (frame)
  "The tabs of FRAME, one at least."
  (or (frame-parameter frame 'tabs)
      (with-selected-frame frame (funcall tab-bar-tabs-function))))

(defun restoration--in-hidden-tab-p (buffer)
  "Whether a tab that is not shown has a window of BUFFER."
  (cl-some (lambda (frame)
             (cl-some (lambda (tab)
                        (when-let ((windows (alist-get 'ws (cdr tab))))
                          (memq buffer (hash-table-values (restoration--buffers-of windows)))))
                      (restoration--tabs frame)))
           (restoration--frames)))

(defun restoration--name (tab)
  "The name of the object of TAB, or nil."
  (alist-get 'restoration (cdr tab)))

(defun restoration--new-name ()
  "A name for the object of a tab that has none."
  (format "Tab-%d" (cl-incf restoration--last-tab)))

(defun restoration--name-tabs (frames)
  "Give the object of each tab of FRAMES a name of its own, which stays."
  (let ((taken (make-hash-table :test #'equal)))
    (dolist (frame frames)
      (let* ((tabs (restoration--tabs frame))
             (named (mapcar (lambda (tab)
                              (let ((name (restoration--name tab)))
                                ;; A frame that was cloned has the tabs of another one.
                                (when (or (null name) (gethash name taken))
                                  (setq name (restoration--new-name)
                                        tab `(,(car tab) (restoration . ,name)
                                              ,@(assq-delete-all 'restoration (copy-sequence (cdr tab))))))
                                (puthash name t taken)
                                tab))
                            tabs)))
        (unless (cl-every #'eq tabs named) (set-frame-parameter frame 'tabs named))))))

(defun restoration--main-window (frame)
  "All windows of FRAME but side windows, which settings and packages open."
  (window-main-window frame))

(defun restoration--tab-state (frame tab)
  "State of the object of TAB of FRAME, or nil if nothing of it could be restored."
  (when-let ((windows (if (eq (car tab) 'current-tab)
                          (restoration--node (restoration--main-window frame))
                        (when-let ((hidden (alist-get 'ws (cdr tab))))
                          (restoration--hidden-node (cdr hidden) (restoration--buffers-of hidden))))))
    (list :windows (restoration--with-held-back tab windows))))

(defun restoration--leaves (node)
  "The windows of NODE, as data."
  (if (plist-get node :split)
      (cl-loop for part across (plist-get node :parts) append (restoration--leaves part))
    (list node)))

(defun restoration--hold-back (shown leaves)
  "Keep LEAVES, windows for which there is no room beside SHOWN of them.
They are saved until the user splits or closes a window of the tab."
  (let ((tab (assq 'current-tab (restoration--tabs (selected-frame)))))
    (setf (alist-get 'restoration-held-back (cdr tab) nil t)
          (and leaves (cons shown (seq-filter #'restoration--text leaves))))))

(defun restoration--with-held-back (tab windows)
  "WINDOWS of TAB, and below them those for which there was no room."
  (pcase-let ((`(,shown . ,leaves) (alist-get 'restoration-held-back (cdr tab))))
    (cond ((null leaves) windows)
          ((/= shown (length (restoration--leaves windows)))
           (setf (alist-get 'restoration-held-back (cdr tab) nil t) nil)
           windows)
          (t (list :split "column"
                   :parts (vconcat (if (equal (plist-get windows :split) "column")
                                       (plist-get windows :parts)
                                     (list windows))
                                   leaves))))))

(defun restoration--blank-tab-state (frame)
  "State of the object of a tab of FRAME with nothing to restore, such as a shell."
  (list :windows (restoration--leaf (get-buffer-create "*scratch*") 1 1 (frame-width frame) (frame-height frame) t)))

(defun restoration--frame-state (frame)
  "FRAME as part of the state of the object Editor; its tabs have names."
  (let ((tabs (restoration--tabs frame)))
    `(:tabs ,(vconcat (mapcar #'restoration--name tabs))
      :tab ,(restoration--name (assq 'current-tab tabs))
      :columns ,(frame-width frame) :lines ,(frame-height frame)
      ,@(and (eq frame (selected-frame)) '(:selected t)))))

(defun restoration--buffer-element (buffer file)
  "BUFFER, whose file is FILE, as an element of the state."
  (with-current-buffer buffer
    (if restoration--waiting
        `(:file ,file :point ,(restoration--place :point) ,@(restoration--view buffer))
      `(:file ,file :point ,(restoration--point buffer) ,@(restoration--view buffer)
        ,@(and (buffer-modified-p) buffer-file-name '(:modified t))))))

(defun restoration--buffer-elements (seen)
  "Buffers with files as elements of the state, the one used last first.
Those in SEEN are looked at; t stands for all of them."
  (append
   (cl-loop for buffer in (buffer-list)
            for old = (buffer-local-value 'restoration--element buffer)
            for file = (if (or (eq seen t) (null old) (memq buffer seen))
                           (and (not (buffer-base-buffer buffer)) (restoration--file buffer))
                         (plist-get old :file))
            when (and file (not (restoration--is-visited-p buffer)))
            collect (if (or (eq seen t) (null old) (memq buffer seen))
                        (let ((new (restoration--buffer-element buffer file)))
                          (if (equal old new)
                              old
                            (with-current-buffer buffer (setq restoration--element new))))
                      old))
   restoration--queue))

(defun restoration--point (buffer)
  "Point of BUFFER, in a window where one shows it."
  (let ((window (get-buffer-window buffer t)))
    (if window (window-point window) (with-current-buffer buffer (point)))))

;;;; Restoring

(defun restoration--note-settings ()
  "Emacs has started: what is shown now the settings have opened, not the user."
  (setq restoration--frames-first (restoration--frames)
        restoration--shown-first (mapcar #'window-buffer (restoration--windows))))

(defun restoration--windows ()
  "All windows but minibuffers."
  (cl-loop for frame in (restoration--frames) append (window-list frame 'never)))

(defun restoration--named-p ()
  "Whether Emacs was told on its command line to open a file or to run Lisp."
  (let ((shown (delq nil (mapcar (lambda (window) (restoration--file (window-buffer window)))
                                 (restoration--windows)))))
    (cl-some (lambda (argument)
               (or (and (string-match-p "\\`--?\\(?:[efl]\\|eval\\|execute\\|funcall\\|load\\)\\(?:=\\|\\'\\)" argument)
                        shown)
                   (let ((file (expand-file-name (replace-regexp-in-string "\\`--[a-z-]+=" "" argument)
                                                 command-line-default-directory)))
                     (or (get-file-buffer file) (member (file-name-as-directory file) shown)))))
             (cdr command-line-args))))

(defun restoration--pristine-p ()
  "The user has opened nothing yet, so restoring disturbs nothing.
Before the first command only settings can have opened what has no file."
  (and (cl-subsetp (cdr (restoration--frames)) restoration--frames-first)
       (cl-notany (lambda (window)
                    (let ((buffer (window-buffer window)))
                      (and (not (memq buffer restoration--shown-first))
                           (or (restoration--file buffer)
                               (and restoration--shown-first (> num-input-keys 0))))))
                  (restoration--windows))))

(defun restoration--visit (each)
  "A buffer for EACH, an element of the state; never asks."
  (let* ((name (plist-get each :file))
         (file (restoration--local-name name))
         (reason (and file (restoration--reason-to-wait file)))
         ;; Without handlers: one of them would ask the other host what "~" is.
         (known (and file (let (file-name-handler-alist) (get-file-buffer file))))
         (buffer (cond ((null name) (get-buffer (plist-get each :buffer)))
                       (known)
                       (reason (restoration--wait each file reason))
                       ;; A pipe would be waited for.
                       ((and file (or (not (file-exists-p file)) (file-regular-p file) (file-directory-p file)))
                        (restoration--visit-unasked each file)))))
    (when (and buffer (not known) (not (buffer-local-value 'restoration--waiting buffer)))
      (with-current-buffer buffer (restoration--apply each)))
    (or buffer (get-buffer-create "*scratch*"))))

(defun restoration--visit-unasked (each file)
  "A buffer that visits FILE, or stands for it if that would ask.
EACH is the element of the state."
  (let ((large-file-warning-threshold nil)
        (enable-local-variables (and enable-local-variables :safe))
        (vc-follow-symlinks nil)
        (inhibit-message t)
        (inhibit-interaction t))
    (condition-case fault
        (restoration--note-auto-save (find-file-noselect file t))
      (error (restoration--wait each file (error-message-string fault))))))

(defun restoration--note-auto-save (buffer)
  "Tell of work that only the auto-save file of BUFFER has, as visiting does.
The next auto-save replaces it.  Return BUFFER."
  (when (restoration--has-auto-save-p buffer)
    (push buffer restoration--auto-saved)
    (run-with-timer 0 nil (lambda () (message "restoration: %s" (restoration--auto-saves)))))
  buffer)

(defun restoration--has-auto-save-p (buffer)
  "Whether the auto-save file of BUFFER is newer than its file."
  (and (buffer-live-p buffer)
       (with-current-buffer buffer
         (and buffer-file-name
              (file-newer-than-file-p (or buffer-auto-save-file-name (make-auto-save-file-name)) buffer-file-name)))))

(defun restoration--auto-saves ()
  "A sentence that names the files with auto-save data; nil if there are none."
  (when-let ((buffers (seq-filter #'restoration--has-auto-save-p (reverse restoration--auto-saved))))
    (format "%s: auto-save data has what was not saved; consider M-x recover-this-file."
            (mapconcat #'buffer-name buffers ", "))))

(defun restoration--apply (each)
  "Narrow the current buffer, set its variables and move point.
EACH is the element of the state."
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
      ;; If there is no room for all windows, the first ones are shown; the others are held back.
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

(defun restoration--fill-frame (state shown tabs)
  "Make TABS, each (NAME . WINDOWS), in the selected frame of STATE.
The tab at the position SHOWN is shown."
  (let ((tab-bar-new-tab-choice t)
        (tab-bar-new-tab-to 'rightmost))
    (cl-loop for (name . windows) in tabs
             for is-first = t then nil
             unless is-first do (tab-bar-new-tab)
             do (restoration--quietly (restoration--fill state windows))
             when name do (restoration--rename-tab name))
    (when (cdr tabs) (tab-bar-select-tab (1+ shown)))))

(defun restoration--rename-tab (name)
  "Give the object of the tab that is shown its NAME."
  (let ((tab (assq 'current-tab (restoration--tabs (selected-frame)))))
    (setf (alist-get 'restoration (cdr tab)) name)))

(defun restoration--fill (state windows)
  "Make WINDOWS in the selected frame; STATE is the frame's."
  (restoration--clear-frame)
  (let* ((window-combination-resize t)
         (window-min-height 1)
         (window-min-width 2)
         (leaves (restoration--build windows (selected-window))))
    (restoration--hold-back (length leaves) (seq-difference (restoration--leaves windows) (mapcar #'cdr leaves) #'eq))
    ;; Twice, because each window takes space from its neighbours.
    (dotimes (_ 2) (restoration--resize leaves (plist-get state :columns) (plist-get state :lines)))
    (pcase-dolist (`(,window . ,leaf) leaves)
      (set-window-buffer window (restoration--visit leaf))
      (unless (buffer-local-value 'restoration--waiting (window-buffer window))
        (set-window-start window (plist-get leaf :start) t)
        (set-window-point window (plist-get leaf :point)))
      (when (plist-get leaf :selected) (select-window window)))))

(defun restoration--clear-frame ()
  "Delete all windows of the selected frame but one, which is selected.
Sidebars stay: settings open them each time, and they are not saved."
  (let* ((windows (or (seq-remove #'restoration--sidebar-p (window-list nil 'never)) (window-list nil 'never)))
         (window (or (seq-find (lambda (window) (not (window-dedicated-p window))) windows) (car windows))))
    (select-window window)
    (set-window-dedicated-p window nil)
    (let ((ignore-window-parameters t)) (mapc #'delete-window (delq window windows)))))

(defun restoration--sidebar-p (window)
  "Whether WINDOW is one of those that packages keep beside the others."
  (or (window-parameter window 'window-side)
      (and (window-dedicated-p window) (not (restoration--file (window-buffer window))))))

(defun restoration--restore (frames)
  "Put FRAMES back: each is (STATE SHOWN . TABS), as in `restoration--fill-frame'."
  (let ((there (restoration--frames)) selected)
    (setq there (cons (selected-frame) (delq (selected-frame) there)))
    (pcase-dolist (`(,state ,shown . ,tabs) frames)
      (let ((frame (or (pop there) (make-frame))))
        (with-selected-frame frame (restoration--fill-frame state shown tabs))
        (when (plist-get state :selected) (setq selected frame))))
    (when selected (select-frame-set-input-focus selected))))

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
